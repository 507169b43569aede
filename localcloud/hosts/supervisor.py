# SPDX-License-Identifier: Apache-2.0
"""Supervises the processes of one node: `python supervisor.py SPEC.json`. Uses the standard library only.

The supervisor ends when the cloud ends that started it, and all processes that it started end with it. The command
inherits its output. It writes the result to a file, atomically.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from localcloud.hosts import kernel
from localcloud.hosts.child_process import UnstartableError
from localcloud.hosts.node import (
    BareNode,
    IsolatedNode,
    ends_within,
    enter_namespaces,
    has_ended,
    protect_kernel_settings,
    remove_cloud_group,
    start_bare,
    start_isolated,
)

# The kernel sends this signal when the cloud dies. A living cloud uses SIGTERM.
_ORPHANED = signal.SIGUSR1
_ENDING = (signal.SIGTERM, _ORPHANED)
_SIGNALS = (*_ENDING, signal.SIGCHLD)
_LONGEST_SECONDS = 3600.0
# The reasons for which the command is asked to end, and killed only later.
_ASKED = ("stopped", "time limit")
# Keys in specifications by earlier versions. After an upgrade of trainyard, a cloud that still runs writes them.
# Without the translation its nodes would start without namespaces.
_FORMER_KEYS = {"place": "namespaces", "room": "sandbox"}
SupervisedNode = IsolatedNode | BareNode


def main(arguments: list[str]) -> int:
    # Signals are blocked, and only taken where we wait for them, so that none comes between a fork and its record.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    written: dict[str, Any] = json.loads(Path(arguments[0]).read_text())
    spec = {_FORMER_KEYS.get(key, key): value for key, value in written.items()}
    unstartable = ""
    if spec.get("namespaces"):
        unstartable = enter_namespaces(spec["namespaces"])
    else:
        protect_kernel_settings()
    # Not earlier, because the kernel resets both settings when a process enters a user namespace.
    kernel.end_with_parent(_ORPHANED)
    kernel.adopt_orphans()
    if os.getppid() != spec["parent"]:
        return 1
    result = _build_result("unstartable", None, unstartable, time.time()) if unstartable else _run_node(spec)
    draft = Path(spec["result"] + ".new")
    draft.write_text(json.dumps(result))
    draft.replace(spec["result"])
    # A dying cloud stays the parent for a moment, so the signal counts too. The last node removes the shared groups.
    if os.getppid() != spec["parent"] or _ORPHANED in signal.sigpending():
        remove_cloud_group(spec)
    return 0


def _run_node(spec: dict[str, Any]) -> dict[str, Any]:
    started = time.time()
    try:
        node: SupervisedNode = start_isolated(spec) if spec.get("namespaces") else start_bare(spec)
    except (OSError, UnstartableError) as error:
        return _build_result(UnstartableError.REASON, None, str(error), started)
    reason, detail = _wait_for_node_end(node, spec["seconds"] or math.inf)
    if reason in _ASKED:
        node.terminate()
        ends_within(node.pid, spec["grace"])
    node.kill()
    try:
        code, more = node.exit_code()
    except UnstartableError as error:
        return _build_result(error.REASON, None, str(error), started)
    return _build_result(reason, code, detail or more, started)


def _wait_for_node_end(node: SupervisedNode, seconds: float) -> tuple[str, str]:
    """Waits until the node must end. Returns the reason and an explanation."""
    deadline = time.monotonic() + seconds
    while not has_ended(node.pid):
        left = deadline - time.monotonic()
        if left <= 0:
            return "time limit", ""
        if node.watch and (detail := node.watch.check()):
            return "limit", detail
        caught = signal.sigtimedwait(_SIGNALS, min(left, node.watch.pause if node.watch else _LONGEST_SECONDS))
        if caught and caught.si_signo in _ENDING:
            if caught.si_signo == _ORPHANED:
                signal.raise_signal(_ORPHANED)  # it is blocked, so it is still pending at the end of this process
            return "stopped", ""
    return "exited", ""


def _build_result(reason: str, code: int | None, detail: str, started: float) -> dict[str, Any]:
    # This includes all processes of the node, because they were waited for here or by the node's first process.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "reason": reason, "code": code, "detail": detail, "started": started, "finished": time.time(),
        "processorSeconds": round(used.ru_utime + used.ru_stime, 3),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
