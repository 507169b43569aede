# SPDX-License-Identifier: Apache-2.0
"""The parent process of a container's command. When the command ends, it kills all descendants, including daemons."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_NOT_STARTED = 127


def main(arguments: list[str]) -> int:
    """Runs a command. Returns docker's exit code for it: its own, or 128 plus the signal that ended it."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    command = os.fork()
    if command == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        try:
            os.execvp(arguments[0], arguments)
        except OSError as error:
            print(f"docker: {arguments[0]}: {error.strerror}", file=sys.stderr)
        os._exit(_NOT_STARTED)
    # docker sends SIGTERM to the first process only.
    signal.signal(signal.SIGTERM, lambda number, frame: _end_process(command, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    code = _wait_for_container(command)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(ChildProcessError):
        while True:
            for child in map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()):
                _end_process(child, signal.SIGKILL)
            os.wait()
    return 128 - code if code < 0 else code


def _wait_for_container(command: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == command:
            return os.waitstatus_to_exitcode(status)


def _end_process(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
