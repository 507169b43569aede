# SPDX-License-Identifier: Apache-2.0
"""Names the line of the team's code where a rank is, among the stacks of all of its processes."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from launcher.stacks.frames import Frame, ProcessStack

_LAUNCHER = str(Path(__file__).resolve().parents[1]) + os.sep
# Python's own library, and packages.
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib(?:32|64)?/(?:python|pypy)\d[^/]*/|\.zip/")
# Functions in which a process waits for those that it has started: they train.
_WAITS_FOR_CHILDREN = re.compile(
    r"/(?:subprocess\.py:\w+|multiprocessing/process\.py:join|multiprocessing/popen_\w+\.py:(?:wait|poll)"
    r"|torch/multiprocessing/spawn\.py:(?:join|start_processes|spawn))$"
)

# Where a rank is: the team's innermost frame, and the function of a library in which that waits.
Place = Tuple[Optional[Dict[str, Any]], Optional[Dict[str, Any]]]


def find_rank_place(stacks: Sequence[ProcessStack], folder: str, commands: Collection[int]) -> Place:
    """Where the rank's main training process is; of several, the one that is somewhere else than most others. Only the
    processes of `commands` and below them count, because services always wait."""
    by_pid = {stack.pid: stack for stack in stacks}
    stacks = [stack for stack in stacks if not {stack.pid, *_ancestors_of(stack, by_pid)}.isdisjoint(commands)]
    training = [stack for stack in stacks if _team_frame(_working_frames(stack, folder), folder) is not None]
    waiting = {stack.pid for stack in training if _waits_for_children(stack, folder)}
    above = {stack.pid: _ancestors_of(stack, by_pid) for stack in training}
    # One that waits for children that train does not train, nor does a child of one that does, as a loader of data.
    served = waiting & {pid for pids in above.values() for pid in pids}
    trains = {stack.pid for stack in training} - waiting
    trainers = [stack for stack in training if stack.pid not in served and not above[stack.pid] & trains]
    if not trainers:
        known = next((stack.main_frames for stack in stacks if stack.main_frames), ())
        return None, _frame_record(known[0], folder) if known else None
    places = [_place_of(_working_frames(stack, folder), folder) for stack in trainers]
    count = Counter(map(repr, places))
    return min(places, key=lambda place: count[repr(place)])


def _ancestors_of(stack: ProcessStack, by_pid: Mapping[int, ProcessStack]) -> set[int]:
    found: set[int] = set()
    parent = by_pid.get(stack.parent)
    while parent is not None and parent.pid not in found:
        found.add(parent.pid)
        parent = by_pid.get(parent.parent)
    return found


def _working_frames(stack: ProcessStack, folder: str) -> tuple[Frame, ...]:
    """The main thread's frames. If it is in no code of the team, those of the first other thread that is."""
    others = [thread.frames for thread in stack.python_threads]
    return next((each for each in (stack.main_frames, *others) if _team_frame(each, folder)), stack.main_frames)


def _waits_for_children(stack: ProcessStack, folder: str) -> bool:
    frames = _working_frames(stack, folder)
    team = _team_frame(frames, folder)
    inside = frames[: frames.index(team)] if team is not None else frames
    return any(_WAITS_FOR_CHILDREN.search(f"{frame.file}:{frame.function}") for frame in inside)


def _place_of(frames: Sequence[Frame], folder: str) -> Place:
    team = _team_frame(frames, folder)
    waits = frames[0] if frames and frames[0] is not team else None
    return _frame_record(team, folder) if team else None, _frame_record(waits, folder) if waits else None


def _team_frame(frames: Sequence[Frame], folder: str) -> Frame | None:
    """The innermost frame below the folder of the code; if there is none, the innermost that is in no library."""
    own = [frame for frame in frames if _is_teams_file(frame.file)]
    return next((frame for frame in own if _relative_path(frame.file, folder)), own[0] if own else None)


def _is_teams_file(file: str) -> bool:
    if file.startswith(("<", "???", _LAUNCHER)) or _LIBRARY.search(file):
        return False
    # `bin/torchrun` is a script of a package; `bin/train.py` is one of a team.
    return file.endswith(".py") or os.path.basename(os.path.dirname(file)) != "bin"


def _relative_path(file: str, folder: str) -> str:
    """The path within the folder; empty if the file is somewhere else."""
    if not os.path.isabs(file):
        return file  # as Pythons before 3.9 name a script
    for root in (folder, os.path.realpath(folder)):
        if root and file.startswith(root.rstrip("/") + "/"):
            return os.path.relpath(file, root)
    return ""


def _frame_record(frame: Frame, folder: str) -> dict[str, Any]:
    return {"function": frame.function, "file": _relative_path(frame.file, folder) or frame.file, "line": frame.line}
