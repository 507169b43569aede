# SPDX-License-Identifier: Apache-2.0
"""The stacks of a process, and what py-spy and Python's faulthandler write about them. All of it is text of others."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

# How Python and py-spy call the thread that runs the script.
MAIN_THREAD = "MainThread"
# As many as faulthandler writes of a thread: the innermost ones.
MOST_FRAMES = 100
MOST_THREADS = 100
_FRAME = re.compile(r'  File (?:"(.*)"|\?\?\?), line (\d+|\?\?\?) in (.*)')
_LARGEST_LINE = 10**9


@dataclass(frozen=True)
class Frame:
    """A function that has been called and not returned. Line 0: unknown."""

    function: str
    file: str
    line: int = 0


@dataclass(frozen=True)
class ThreadStack:
    """A thread's frames, innermost first."""

    name: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class ProcessStack:
    """A process below the launcher. `how` says what the stacks come from."""

    pid: int
    parent: int
    how: str
    command: str
    threads: tuple[ThreadStack, ...]

    @property
    def main_frames(self) -> tuple[Frame, ...]:
        """The main thread's frames of Python; empty if they are unknown."""
        if self.how == PROC:
            return ()
        return next((thread.frames for thread in self.threads if thread.name == MAIN_THREAD), ())


PY_SPY, HANDLER, PROC = "py-spy", "handler", "proc"


def parse_handler_dump(text: str) -> tuple[Frame, ...]:
    """The frames of a thread as faulthandler writes them."""
    found: list[Frame] = []
    for line in text.splitlines():
        match = _FRAME.fullmatch(line)
        if match is not None and len(found) < MOST_FRAMES:
            file, number, function = match.groups()
            found.append(Frame(function, file or "???", int(number[:9]) if number.isdigit() else 0))
    return tuple(found)


def parse_py_spy_dump(content: bytes, pid: int) -> tuple[ThreadStack, ...]:
    """The threads of `py-spy dump --json`, the main thread first; empty if this is nothing of that kind."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return ()
    threads = [_py_spy_thread(thread, pid) for thread in _dicts_in(document)]
    return tuple(sorted(threads, key=lambda thread: thread.name != MAIN_THREAD)[:MOST_THREADS])


def _py_spy_thread(thread: dict[str, Any], pid: int) -> ThreadStack:
    name = MAIN_THREAD if thread.get("os_thread_id") == pid else str(thread.get("thread_name") or "???")
    return ThreadStack(name, tuple(map(_py_spy_frame, _dicts_in(thread.get("frames"))[:MOST_FRAMES])))


def _py_spy_frame(frame: dict[str, Any]) -> Frame:
    line = frame.get("line")
    # Newer Pythons tell py-spy the class, too, and others do not: ranks would differ only by that.
    function = str(frame.get("name")).rpartition(".")[2] or "???"
    known = isinstance(line, int) and 0 <= line <= _LARGEST_LINE
    return Frame(function, str(frame.get("filename") or "???"), int(line or 0) if known else 0)


def _dicts_in(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
