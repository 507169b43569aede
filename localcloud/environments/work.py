# SPDX-License-Identifier: Apache-2.0
"""Commands that take a while: run with their last lines at hand, and with a word on how far they are."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

LINES_SHOWN = 15
TICK_SECONDS = 1.0
_PERCENT = re.compile(r"^\s*\[\s*(\d+)%\]")
_FETCHED = re.compile(r"^\s*(?:Collecting|Downloading|Using cached) (\S+)")


class MakeError(Exception):
    """An environment cannot be made; the text says why and what to do."""


class MakeProgress(Protocol):
    """Who is told: `say` for steps, `update` as often as one likes for what goes on within one."""

    def say(self, text: str) -> None: ...

    def update(self, text: str) -> None: ...


def pip(
    python: Path,
    words: Sequence[str],
    tell: MakeProgress,
    title: str,
    more: Mapping[str, str] | None = None,
    hashed: bool = True,
) -> None:
    """This interpreter's pip, for an environment that has none; where packages come from is the user's setting."""
    hashes = ["--require-hashes"] if hashed else []
    quiet = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    first, *rest = words
    compiled = ["--no-compile"] if first == "install" else []
    command = [sys.executable, "-m", "pip", "--python", str(python), first, *quiet, *compiled, *hashes, *rest]
    run_watched(command, tell, title, more)


def run_watched(command: Sequence[str], tell: MakeProgress, title: str, more: Mapping[str, str] | None = None) -> None:
    """Runs a command to its end; the clock ticks also while it says nothing."""
    last: collections.deque[str] = collections.deque(maxlen=LINES_SHOWN)
    state = [title]
    with subprocess.Popen(
        command, env={**os.environ, **(more or {})}, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0,
    ) as process:  # fmt: skip
        reader = threading.Thread(target=_read, args=(process, last, state, title), daemon=True)
        reader.start()
        try:
            while reader.is_alive():
                reader.join(TICK_SECONDS)
                tell.update(state[0])
        except BaseException:
            # The compilers that pip has started as well.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            reader.join()
            raise
    if process.returncode:
        shown = "\n".join(f"  {line}" for line in last)
        raise MakeError(f"{title}: `{' '.join(command[:6])} …` ended with {process.returncode}:\n{shown}")


def _read(process: subprocess.Popen[str], last: collections.deque[str], state: list[str], title: str) -> None:
    assert process.stdout
    for line in process.stdout:
        last.append(line.rstrip())
        if match := _PERCENT.match(line):
            state[0] = f"{title}, {match[1]} %"
        elif match := _FETCHED.match(line):
            state[0] = f"{title}: {match[1].partition('-')[0]}"
