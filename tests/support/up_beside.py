# SPDX-License-Identifier: Apache-2.0
"""Runs `trainyard up` in a separate process. The test can watch it, and kill it with all processes that it started."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.local_team import LONGEST_SECONDS, ROOT, Team


@dataclass
class Up:
    """The command and its output so far. The local cloud is not part of its family: it goes on after the command."""

    process: subprocess.Popen[bytes]
    output: Path

    def wait(self, seconds: float) -> int:
        return self.process.wait(seconds)

    def wait_at_most(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    @property
    def over(self) -> bool:
        return self.process.poll() is not None

    def said(self) -> str:
        return self.output.read_text("utf-8", "replace")

    def family(self) -> list[psutil.Process]:
        """The command's process, then all that it started."""
        with contextlib.suppress(psutil.NoSuchProcess):
            command = psutil.Process(self.process.pid)
            return [command, *(one for one in command.children(recursive=True) if not _is_cloud(one))]
        return []

    def end(self, family: Iterable[psutil.Process]) -> None:
        """Waits until all processes have ended. Those that hang are killed, and that is an error."""
        family, deadline = list(family), time.monotonic() + LONGEST_SECONDS
        while (alive := [one for one in family if self._lives(one)]) and time.monotonic() < deadline:
            time.sleep(0.05)
        names = [_name(process) for process in alive]
        kill(alive)
        self.process.wait(LONGEST_SECONDS)
        assert not names, f"outlived what started them: {names}"

    def _lives(self, process: psutil.Process) -> bool:
        """Whether a process runs. Zombies do not count."""
        self.process.poll()
        with contextlib.suppress(psutil.NoSuchProcess):
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return False


@contextmanager
def up_beside(team: Team, *words: str, stack: str = "local") -> Iterator[Up]:
    """Starts `up` of a stack. Processes that still run after the block are killed."""
    file = team.stacks.parent / "up.txt"
    with file.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainyard", "up", stack, "--local", "--stacks", str(team.stacks), *words],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env={**os.environ, "TRAINYARD_HOME": str(team.home), "PULUMI_OPTION_COLOR": "never"},
        )  # fmt: skip
    up = Up(process, file)
    try:
        yield up
    finally:
        kill(up.family())
        process.wait(LONGEST_SECONDS)


def kill(processes: Iterable[psutil.Process]) -> list[str]:
    """Sends SIGKILL to each, and returns the names of those that were running."""
    died = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            died.append(process.name())
            process.kill()
    return died


def _is_cloud(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return "localcloud.serve" in process.cmdline()
    return False


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return "?"
