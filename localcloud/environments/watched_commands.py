# SPDX-License-Identifier: Apache-2.0
"""Runs long commands, and shows their progress. Errors contain the last lines of a command."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from trainyard.engine.isolated import isolated_python, without_python_settings

LINES_SHOWN = 15
TICK_SECONDS = 1.0
# Options with which pip asks nothing, and prints one line for each step.
QUIET = ("--disable-pip-version-check", "--no-input", "--progress-bar", "off")
# The part of the free disk that has to stay free, as 1/n.
_KEPT_FREE = 8
_PERCENT = re.compile(r"^\s*\[\s*(\d+)%\]")
# apt's progress lines on `APT::Status-Fd`: the number of the file, the percentage of all, and a text.
_APT_PERCENT = re.compile(r"^dlstatus:\d+:(\d+)")
_FETCHED = re.compile(r"^\s*(?:Collecting|Downloading|Using cached) (\S+)(?: \((\S+ [kMG]B)\))?")
# pip prints nothing more until all are unpacked, which takes minutes for large ones.
_UNPACKING = re.compile(r"^Installing collected packages: (.*)")
_OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")


class MakeError(Exception):
    """An environment cannot be made; the text says why and what to do."""


class MakeProgress(Protocol):
    """Receives progress: `say` for each step, `update` as often as needed within a step."""

    def say(self, text: str) -> None: ...

    def update(self, text: str) -> None: ...


class DiskGuard:
    """Passes on progress, and raises MakeError when the disk gets full. The size of packages is not known beforehand,
    and other programs of this machine need space too."""

    def __init__(self, tell: MakeProgress, folder: Path) -> None:
        self._tell, self._folder = tell, folder
        self._least = shutil.disk_usage(folder).free // _KEPT_FREE

    def say(self, text: str) -> None:
        self._tell.say(text)

    def update(self, text: str) -> None:
        if shutil.disk_usage(self._folder).free < self._least:
            raise MakeError("No space left for other things: the packages fill the disk")
        self._tell.update(text)


def run_pip(
    python: Path,
    words: Sequence[str],
    tell: MakeProgress,
    title: str,
    more: Mapping[str, str] | None = None,
    hashed: bool = True,
) -> None:
    """Runs this interpreter's pip for an environment, which has no pip. The index is that of the user's settings."""
    hashes = ["--require-hashes"] if hashed else []
    first, *rest = words
    compiled = ["--no-compile"] if first == "install" else []
    words = [first, *QUIET, *compiled, *hashes, *rest]
    command = isolated_python("-m", "pip", "--python", str(python), *words)
    run_watched(command, tell, title, more)


def _maker_variables() -> dict[str, str]:
    """The variables without those of a surrounding `make`, which would limit compilers to one processor, and without
    those that let the Pythons below import other modules."""
    return without_python_settings({name: value for name, value in os.environ.items() if name not in _OF_MAKE})


def run_watched(command: Sequence[str], tell: MakeProgress, title: str, more: Mapping[str, str] | None = None) -> None:
    """Runs a command to its end. Progress is shown even while the command prints nothing."""
    last: collections.deque[str] = collections.deque(maxlen=LINES_SHOWN)
    state = [title]
    with subprocess.Popen(
        command, env={**_maker_variables(), **(more or {})}, text=True, errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0,
        close_fds=False,  # for the lock of its folder (lock_environment); Python's other files are not inherited
    ) as process:  # fmt: skip
        reader = threading.Thread(target=_follow_output, args=(process, last, state, title), daemon=True)
        reader.start()
        try:
            while reader.is_alive():
                reader.join(TICK_SECONDS)
                tell.update(state[0])
        except BaseException:
            # The whole group: pip may have started compilers.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            reader.join()
            raise
    if process.returncode:
        shown = "\n".join(f"  {line}" for line in last)
        raise MakeError(f"{title}: `{' '.join(command[:6])} …` ended with {process.returncode}:\n{shown}")


def _follow_output(process: subprocess.Popen[str], last: collections.deque[str], state: list[str], title: str) -> None:
    assert process.stdout
    for line in process.stdout:
        if match := _APT_PERCENT.match(line):
            state[0] = f"{title}, {match[1]} %"
            continue
        last.append(line.rstrip())
        if match := _PERCENT.match(line):
            state[0] = f"{title}, {match[1]} %"
        elif match := _FETCHED.match(line):
            size = f", {match[2]}" if match[2] and not match[1].endswith(".metadata") else ""
            state[0] = f"{title}: {match[1].rpartition('/')[2].partition('-')[0]}{size}"
        elif match := _UNPACKING.match(line):
            state[0] = f"{title}: unpacking the {len(match[1].split(', '))} packages"
