# SPDX-License-Identifier: Apache-2.0
"""Looks after the processes of one node: `python supervisor.py SPEC.json`. Standard library only: every node has one.

It dies with the cloud that started it, and nothing that it started outlives it: it adopts whatever its command leaves
behind. The command inherits its output; how it ended is written to a file, whole or not at all.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from localcloud.hosts import folders, kernel

_POLL_SECONDS = 0.02
_ENDINGS = (signal.SIGTERM, signal.SIGALRM)


class _StopError(Exception):
    """The node is to end now, for this reason."""


def main(arguments: list[str]) -> int:
    # Held back until the command is known: a signal inside Popen would leave a child without a name.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)
    spec: dict[str, Any] = json.loads(Path(arguments[0]).read_text())
    signal.signal(signal.SIGTERM, _on_signal)
    signal.signal(signal.SIGALRM, _on_alarm)
    try:
        _enter(spec.get("place"))
        unstartable = _show(spec)
    except OSError as error:
        unstartable = f"its namespaces: {error}"
    kernel.end_with_parent(signal.SIGTERM)
    kernel.adopt_orphans()
    if os.getppid() != spec["parent"]:
        return 1
    result = _unstartable(unstartable, time.time()) if unstartable else _run(spec)
    draft = Path(spec["result"] + ".new")
    draft.write_text(json.dumps(result))
    draft.replace(spec["result"])
    return 0


def _enter(place: dict[str, Any] | None) -> None:
    """Puts this process where its node stands: open files of the node's namespaces, and who it is there."""
    if place is None:
        _spare_the_machine()
        return
    kernel.enter(place["user"], kernel.NEW_USER)
    kernel.enter(place["network"], kernel.NEW_NETWORK)
    for file in (place["user"], place["network"]):
        os.close(file)
    with suppress(OSError):  # names are a comfort: addresses are what nodes find one another by
        kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_HOSTNAME)
        socket.sethostname(place["hostname"])
        for source, target in place["mounts"].items():
            kernel.bind_mount(source, target)


def _show(spec: dict[str, Any]) -> str:
    """Puts the folders that the job mounts where it wants them; why that cannot be, if it cannot."""
    try:
        if spec["folders"] and not spec.get("place") and os.geteuid():
            kernel.own_users()
            kernel.own_mounts()
        for source, target in spec["folders"]:
            folders.show(source, target, spec["scratch"])
    except OSError as error:
        wanted = ", ".join(target for _, target in spec["folders"])
        return f"{wanted} cannot be mounted: {error}; docs/local-cloud.md says what mounts need"
    return ""


def _spare_the_machine() -> None:
    """A node without a network of its own must not set the machine's, as root could: launchers try, to pin ports."""
    if os.geteuid() == 0:
        with suppress(OSError):  # who may not mount finds /proc/sys closed already, as in containers
            kernel.own_mounts()
            kernel.make_read_only("/proc/sys")


def _run(spec: dict[str, Any]) -> dict[str, Any]:
    reason, started = "exited", time.time()
    process: subprocess.Popen[bytes] | None = None
    try:
        process = subprocess.Popen(
            spec["command"], cwd=spec["folder"], env=spec["environment"], stdin=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=_before_the_command,
        )  # fmt: skip
        signal.setitimer(signal.ITIMER_REAL, spec["seconds"])
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
        process.wait()
    except _StopError as stop:
        reason = str(stop)
    except OSError as error:
        return _unstartable(str(error), started)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    _end(process, spec["grace"] if reason != "exited" else 0)
    code = process.returncode if process else None
    # Of everything that the node ran: whatever its parents left behind was adopted, and waited for, here.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "reason": reason, "code": code, "detail": "", "started": started, "finished": time.time(),
        "processorSeconds": round(used.ru_utime + used.ru_stime, 3),
    }  # fmt: skip


def _unstartable(detail: str, started: float) -> dict[str, Any]:
    return {"reason": "unstartable", "code": None, "detail": detail, "started": started, "finished": time.time()}


def _end(process: subprocess.Popen[bytes] | None, grace: float) -> None:
    """Asks the whole group to end, then makes everything end that came from the command."""
    if process and process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while process and process.poll() is None and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    while children := _children():
        for child in children:
            _signal(child, signal.SIGKILL)
        if process:
            process.wait()
        _reap()


def _reap() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(_POLL_SECONDS)
                return
        except ChildProcessError:
            return


def _children() -> list[int]:
    """Children that still have to be ended or waited for, adopted ones too."""
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in text.split()]


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _before_the_command() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
    kernel.end_with_parent(signal.SIGKILL)


def _on_signal(number: int, frame: FrameType | None) -> None:
    raise _StopError("stopped")


def _on_alarm(number: int, frame: FrameType | None) -> None:
    raise _StopError("time limit")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
