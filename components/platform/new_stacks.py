# SPDX-License-Identifier: Apache-2.0
"""What a platform puts into a new stack file (`trainyard init`): where the account is, and the machines of a job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog.platforms import Capability


@dataclass(frozen=True, slots=True)
class Answer:
    """A value of a new stack file that nobody can conclude from a script. `key`: its name for `--set`.

    `question`: for people, who are asked unless it is empty. `source`: where the value comes from, for a comment. Empty
    if somebody said it. `place`: the key of the file in which it is.
    """

    key: str
    value: str
    place: str
    source: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls `init`: environment variables, home folder, the profile that they name, and whether they want the local
    cloud's account."""

    environment: Mapping[str, str]
    home: Path
    profile: str | None = None
    local: bool = False


@dataclass(frozen=True, slots=True)
class Answers:
    """`problem`: why an account's settings could not be read, so that the answers are those of the local cloud."""

    values: tuple[Answer, ...]
    problem: str = ""
    local: bool = False


@dataclass(frozen=True, slots=True)
class MachineNeeds:
    """What a job needs of its machines. `processes`: on each node; None if nothing says it. `per_accelerator`: as many
    as a machine has accelerators."""

    gpus: bool
    processes: int | None
    per_accelerator: bool


@dataclass(frozen=True, slots=True)
class NewMachine:
    """`job`: keys of the job, `stack`: keys of the whole stack that go with them. `processes`: on each node.
    `comment`: what else could stand there."""

    job: Mapping[str, Any]
    processes: int
    comment: str = ""
    stack: Mapping[str, Any] = field(default_factory=dict)


class NewStacks(Capability, ABC):
    """Every deployable platform has it."""

    place = "local.new_stack.NEW_STACKS"
    lacking = "trainyard cannot begin a stack file for {platform} yet: copy an example of stacks/"

    @abstractmethod
    def find_answers(self, caller: Caller) -> Answers:
        """What is known of the caller's account. Calls no cloud, and reads no key or token."""

    @abstractmethod
    def stack_keys(self, answers: Mapping[str, str]) -> Mapping[str, Any]:
        """Keys of the stack file, from answers by their keys."""

    @abstractmethod
    def choose_machine(self, needs: MachineNeeds) -> NewMachine:
        """The smallest usual machine for a job."""

    def image(self, tag: str) -> str:
        """The image of a job."""
        return f"${{registry}}:{tag}"


def smallest_machine(usual: Sequence[str], rows: Mapping[str, Mapping[str, Any]], needs: MachineNeeds) -> str:
    """The first of the usual machines that has an accelerator for each process; else the last."""
    wanted = needs.processes or 1
    return next((name for name in usual if rows[name].get("accelerators", 0) >= wanted), usual[-1])


def processes_on(row: Mapping[str, Any], needs: MachineNeeds) -> int:
    """The processes on a node with this machine."""
    accelerators = int(row.get("accelerators", 0))
    if needs.gpus and (needs.per_accelerator or needs.processes is None):
        return max(1, accelerators)
    return min(needs.processes or 1, accelerators) if needs.gpus else needs.processes or 1
