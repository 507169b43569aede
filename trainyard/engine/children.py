# SPDX-License-Identifier: Apache-2.0
"""The processes that a language host starts. Each can be asked to end, and none outlives the host."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

LEASH = Path(__file__).with_name("leash.py")
POLITE_SECONDS = 3.0


class Children:
    """All processes started through here, so that one call can end them."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def start(
        self,
        command: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        stdin: int = subprocess.DEVNULL,
        output: int | IO[bytes] | None = None,
        errors: int | IO[bytes] | None = None,
    ) -> "subprocess.Popen[bytes]":
        """Starts `command` through leash.py, in this process's group: the engine may kill the whole group."""
        leashed = [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), *command]
        with self._lock:
            if self._closed:
                raise RuntimeError("the language host is shutting down")
            child = subprocess.Popen(leashed, cwd=cwd, env=dict(env), stdin=stdin, stdout=output, stderr=errors)
            self._running.add(child)
        return child

    def forget(self, child: "subprocess.Popen[bytes]") -> None:
        with self._lock:
            self._running.discard(child)

    def stop_all(self) -> None:
        """End every child and refuse new ones."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for child in running:
            signal_child(child, signal.SIGINT)
        for child in running:
            stop(child)


def signal_child(child: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    if child.poll() is None:
        child.send_signal(number)


def stop(child: "subprocess.Popen[bytes]") -> None:
    """Sends SIGTERM to the child, and kills it if it does not end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        signal_child(child, number)
        try:
            child.wait(POLITE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return
