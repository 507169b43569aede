# SPDX-License-Identifier: Apache-2.0
"""One node, from its supervisor's start to its result: in a sandbox, against a plain process."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.harness.rows import Aim, Row, Spent, in_turns
from localcloud.environments import layout
from localcloud.hosts import child_process, images, limits, users
from localcloud.hosts.limits import ControlGroups
from localcloud.hosts.site import Site

# The limit of what a sandbox may cost.
AIM_SECONDS = 0.1
_COMMAND = ("true",)
# The fastest of this many measurements counts, because other work on the machine only makes them slower.
_IN_A_ROW = 4


def rows() -> list[Row]:
    held = limits.make_cloud_group(limits.machine_limits())
    site = Site()
    try:
        site.prepare()
        with tempfile.TemporaryDirectory() as folder:
            apart = partial(_node, Path(folder), {**_sandboxed(Path(folder), held), "namespaces": _place(site)})
            ours, floor = in_turns(apart, partial(_node, Path(folder), {}))
    finally:
        site.close()
        if held:
            held.remove()
    return [
        _row("a place of its own", [one.clock for one in ours], [one.clock for one in floor], AIM_SECONDS),
        _row("its processor time", [one.processor for one in ours], [one.processor for one in floor], None),
    ]


def _row(name: str, ours: Sequence[float], floor: Sequence[float], limit: float | None) -> Row:
    more = statistics.median(one - other for one, other in zip(ours, floor, strict=True))
    beside = statistics.median(floor)
    aim = None if limit is None else Aim("figure", limit)
    return Row(name, more, "s", "more than a process beside all others", beside, (beside + more) / beside, aim)


def _place(site: Site) -> Mapping[str, int]:
    return {"user": site.user, "network": site.network}


def _sandboxed(folder: Path, held: ControlGroups | None) -> Mapping[str, Any]:
    user = users.run_user("bench")
    own = [(str(folder / name), target) for name, target in (("home", images.HOME), ("tmp", images.TEMPORARY))]
    for name in ("root", "home", "tmp"):
        (folder / name).mkdir()
        users.hand_over(folder / name, user)
    for name, content in images.FILES.items():
        (folder / name).write_text(content)
    settings = [(str(folder / name), f"/etc/{name}") for name in images.FILES]
    sandbox = {
        "root": str(folder / "root"), "user": user, "users": 1, "machine": False, "hostname": "bench", "own": own,
        "folders": [], "ports": None, "printed": str(folder / "output"), "filtered": True,
        "shown": [
            *settings, images.shown_launcher(),
            *images.shown_programs(layout.interpreter_layout(Path(sys.executable)), {}),
        ],
        "limits": limits.node_limits(0, 0, 1, folder),
        "groups": held.child("bench").folders if held else {}, "version": held.version if held else 0,
    }  # fmt: skip
    return {"sandbox": sandbox, "folder": images.HOME}


def _node(folder: Path, more: Mapping[str, Any]) -> Spent:
    spent = [_once(folder, more) for _ in range(_IN_A_ROW)]
    return Spent(min(one.clock for one in spent), min(one.processor for one in spent))


def _once(folder: Path, more: Mapping[str, Any]) -> Spent:
    spec = {
        "parent": os.getpid(), "command": _COMMAND, "folder": str(folder), "environment": {"PATH": os.defpath},
        "seconds": 0, "grace": 1, "result": str(folder / "result"), **more,
    }  # fmt: skip
    (folder / "spec").write_text(json.dumps(spec))
    began, before = time.perf_counter(), _processor()
    subprocess.run(
        child_process.module_command("localcloud.hosts.supervisor", str(folder / "spec")),
        env=child_process.interpreter_variables(), check=True, stdin=subprocess.DEVNULL,
        pass_fds=tuple(spec.get("namespaces", {}).values()),
    )  # fmt: skip
    took = Spent(time.perf_counter() - began, _processor() - before)
    result = json.loads((folder / "result").read_text())
    if (result["reason"], result["code"]) != ("exited", 0):
        raise RuntimeError(f"{result['reason']}: {result['detail']}")
    return took


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
