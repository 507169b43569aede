# SPDX-License-Identifier: Apache-2.0
"""What a platform adds to a stack that is made from something else: what no such source says, and its machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from catalog.platforms import Capability

# A text that somebody has to replace. `check` warns of it by the code UNFILLED, and `up` refuses it.
PLACEHOLDER = "replace-me"
# The same where only twelve digits are allowed.
NO_ACCOUNT = "0" * 12
UNFILLED = "TY6000"
# Set where a stack is only tried, so that it may have placeholders.
PLACEHOLDERS_ALLOWED = "TRAINYARD_PLACEHOLDERS_ALLOWED"


def placeholder_paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where values of a stack are still to be filled in."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from placeholder_paths(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from placeholder_paths(below, (*path, index))
    elif isinstance(value, str) and (PLACEHOLDER in value or value == NO_ACCOUNT):
        yield path


@dataclass(frozen=True, slots=True)
class MachineNeeds:
    """What each node needs. `gpu`: how its accelerators are called, if the source says so."""

    cpus: int = 1
    memory_gb: float = 0
    gpus: int = 0
    gpu: str = ""
    disk_gb: int = 0


class ChosenMachine(NamedTuple):
    """A job's `shape`, more keys of the stack that it needs, and a sentence if others would fit too."""

    shape: Any
    config: Mapping[str, Any]
    choice: str


class ChosenImage(NamedTuple):
    """A job's `image`, and what to do where it is not the one that was named."""

    image: str
    remedy: str


@dataclass(frozen=True, slots=True)
class StackFrame(Capability):
    """`config`: the keys of the stack but for team, environment and jobs, from the settings in a home folder, where
    there are any. `machine` and `image`: of a job. `job`: more keys of every job."""

    place = "frame.STACK_FRAME"
    lacking = "stacks for {platform} cannot be made from other files yet"
    config: Callable[[Path], Mapping[str, Any]]
    machine: Callable[[MachineNeeds], ChosenMachine]
    image: Callable[[str], ChosenImage]
    job: Callable[[MachineNeeds], Mapping[str, Any]]
