# SPDX-License-Identifier: Apache-2.0
"""A node without a place of its own, on a machine that has none to give: a process beside all others, as this user."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.hosts import kernel

_POLL_SECONDS = 0.02


@dataclass
class BareNode:
    """`pid` is the command itself."""

    process: subprocess.Popen[bytes]
    watch: None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)

    def end(self) -> None:
        """Everything that came from the command: what it left behind was adopted by this process."""
        while children := _children():
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            self.process.wait()
            _reap()

    def ended(self) -> tuple[int | None, str]:
        return self.process.returncode, ""


def enter() -> str:
    """A node without a network of its own must not set the machine's, as root could: launchers try, to pin ports."""
    if os.geteuid() == 0:
        with suppress(OSError):  # who may not mount finds /proc/sys closed already, as in containers
            kernel.own_mounts()
            kernel.make_read_only("/proc/sys")
    return ""


def start(spec: dict[str, Any]) -> BareNode:
    process = subprocess.Popen(
        spec["command"], cwd=spec["folder"], env=spec["environment"], stdin=subprocess.DEVNULL,
        start_new_session=True, preexec_fn=_before_the_command,
    )  # fmt: skip
    return BareNode(process)


def _before_the_command() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    kernel.end_with_parent(signal.SIGKILL)


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
