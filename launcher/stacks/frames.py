# SPDX-License-Identifier: Apache-2.0
"""The stacks of a process, and what py-spy and Python's faulthandler write about them. All of it is text of others."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# How Python and py-spy call the thread that runs the script.
MAIN_THREAD = "MainThread"
# As many as faulthandler writes of a thread: the innermost ones.
MOST_FRAMES = 100
MOST_THREADS = 100
_EVENT_LOOP = re.compile(r"asyncio/base_events\.py:_run_once$")
_THREAD = "Thread "
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
    """A process below the launcher. `how` says what the stacks come from. `halted`: a signal or a debugger stopped
    it."""

    pid: int
    parent: int
    how: str
    command: str
    threads: tuple[ThreadStack, ...]
    halted: bool = False

    @property
    def main_frames(self) -> tuple[Frame, ...]:
        """The main thread's frames of Python; empty if they are unknown."""
        if self.how == PROC:
            return ()
        return next((thread.frames for thread in self.threads if thread.name == MAIN_THREAD), ())

    @property
    def python_threads(self) -> tuple[ThreadStack, ...]:
        """The threads whose frames are of Python, the main thread first."""
        return () if self.how == PROC else self.threads


PY_SPY, HANDLER, PROC = "py-spy", "handler", "proc"


def parse_handler_dump(text: str) -> tuple[ThreadStack, ...]:
    """The main thread as faulthandler writes it, and others that follow it."""
    found: list[tuple[str, list[Frame]]] = [(MAIN_THREAD, [])]
    for line in text.splitlines():
        match = _FRAME.fullmatch(line)
        if line.startswith(_THREAD):
            found.append((line[len(_THREAD) :], []))
        elif match is not None and len(found[-1][1]) < MOST_FRAMES:
            file, number, function = match.groups()
            found[-1][1].append(Frame(function, file or "???", int(number[:9]) if number.isdigit() else 0))
    return tuple(ThreadStack(name, tuple(frames)) for name, frames in found[:MOST_THREADS] if frames)


def runs_event_loop(threads: Sequence[ThreadStack]) -> bool:
    """Whether the main thread waits for events, as that of a worker of Dask does, whose tasks are in other threads."""
    frames = threads[0].frames if threads else ()
    waits = bool(frames) and frames[0].file.endswith("selectors.py")
    return waits and any(_EVENT_LOOP.search(f"{frame.file}:{frame.function}") for frame in frames)


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
