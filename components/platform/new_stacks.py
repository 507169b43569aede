# SPDX-License-Identifier: Apache-2.0
"""What a platform puts into a new stack file (`trainyard init`, `trainyard convert`): where the account is, and the
machine and the image of a job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from catalog.platforms import Capability
from catalog.tables import table
from components.platform.config_files import ConfigProblemError
from schemas.name_suggestions import and_list, count_noun

Row = Mapping[str, Any]
# The source of an answer.
OF_LOCAL_CLOUD = "of the local cloud"


@dataclass(frozen=True, slots=True)
class Answer:
    """A value of a new stack file that no script says. `key`: its name for `--set`.

    `place`: the key of the file in which it is. `source`: where the value comes from, for a comment. Empty if somebody
    said it. `question`: for people, who are asked unless it is empty. `unknown`: what stands in place of a value that
    is only an example or a guess; empty leaves the key out. None if the value may stand as it is.
    """

    key: str
    value: str
    place: str
    source: str = ""
    question: str = ""
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose stack it is: environment variables, home folder, the profile that they name, and whether they want the
    local cloud's account."""

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
    """What each node needs. `gpu`: how its accelerators are called, if the source says so."""

    cpus: int = 1
    memory_gb: float = 0
    gpus: int = 0
    gpu: str = ""
    disk_gb: int = 0


@dataclass(frozen=True, slots=True)
class NewMachine:
    """`job`: keys of the job. `accelerators`: those of the machine. `choice`: a sentence if it lacks something, or
    others would fit, too. `stack`: keys of the whole stack that go with it."""

    job: Mapping[str, Any]
    accelerators: int = 0
    choice: str = ""
    stack: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class NewStacks(Capability, ABC):
    """Every deployable platform has it."""

    place = "local.new_stack.NEW_STACKS"
    lacking = "trainyard cannot begin a stack file for {platform} yet: copy an example of stacks/"
    local_answers: ClassVar[tuple[Answer, ...]]

    def find_answers(self, caller: Caller) -> Answers:
        """What is known of the caller's account, or the local cloud's. Calls no cloud, and reads no key or token."""
        problem = ""
        try:
            if not caller.local and (known := self.answers_of_account(caller)):
                return Answers(known)
        except ConfigProblemError as error:
            problem = str(error)
        return Answers(self.local_answers, problem, local=True)

    @abstractmethod
    def answers_of_account(self, caller: Caller) -> tuple[Answer, ...]:
        """The same answers for the caller's own account. Empty if they have none. Raises ConfigProblemError."""

    @abstractmethod
    def stack_keys(self, answers: Mapping[str, str]) -> Mapping[str, Any]:
        """Keys of the stack file, from answers by their keys."""

    @abstractmethod
    def choose_machine(self, needs: MachineNeeds) -> NewMachine:
        """The smallest usual machine for a job."""

    def choose_image(self, reference: str) -> tuple[str, str]:
        """The image of a job that names this one elsewhere, and what to do if it is another."""
        return reference, ""


def image_of_own(reference: str, why: str) -> tuple[str, str]:
    """An image of the stack's own registry in place of another one, and what to do."""
    tag = "-".join(reference.partition("@")[0].rpartition("/")[2].split(":"))
    return f"${{registry}}:{tag}", f"{why}: build an image that begins with {reference}"


def smallest_machine(rows: Mapping[str, Row], needs: MachineNeeds) -> tuple[str, str]:
    """The name of the smallest machine that has all of it, and a sentence if there is none, or others would fit, too.

    The usual GPUs of catalog/first_stacks.toml come before cheaper ones.
    """
    usual = table("first_stacks")["machines"]["usual_gpus"]
    wanted = (needs.gpus, needs.cpus, needs.memory_gb)

    def rank(name: str) -> tuple[Any, ...]:
        # As much of what is needed as there is, then as little as possible.
        row, size = rows[name], _size_of(rows[name])
        gpus, cpus, memory = (-min(pair) for pair in zip(size, wanted, strict=True))
        is_named = needs.gpu in _gpu_names(row)
        is_usual = is_named or not _gpu_names(row).isdisjoint(usual)
        return (
            gpus, not is_named, cpus, memory, size[0], not is_usual, row.get("usd_per_hour", 0), *size, name,
        )  # fmt: skip

    name = min(rows, key=rank)
    row = rows[name]
    has_named = not needs.gpus or not needs.gpu or needs.gpu in _gpu_names(row)
    if not has_named or any(has < need for has, need in zip(_size_of(row), wanted, strict=True)):
        called = f" ({needs.gpu})" if needs.gpu else ""
        words = [f"{count_noun(needs.gpus, 'GPU')}{called}"] if needs.gpus else []
        words += [count_noun(needs.cpus, "CPU"), *([f"{needs.memory_gb:g} GB of memory"] if needs.memory_gb else [])]
        return name, f"no machine has {and_list(words)}: {name} comes nearest"
    if needs.gpus and not needs.gpu:
        return name, f"nothing says which GPU it needs: {name} has {row.get('model') or row['accelerator']}"
    return name, ""


def _size_of(row: Row) -> tuple[float, float, float]:
    """Accelerators, CPUs and GB of memory."""
    return row.get("accelerators", 0), row["vcpus"], row.get("memory_gb") or row["memory_gib"]


def _gpu_names(row: Row) -> set[str]:
    """`A100 80GB` is an `A100`, too."""
    name = str(row.get("model") or row["accelerator"])
    return {name, name.partition(" ")[0]}
