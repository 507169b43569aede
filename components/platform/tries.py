# SPDX-License-Identifier: Apache-2.0
"""A try as values: what a person wants to start, and what that is in the terms of the plan."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.base import answers
from components.platform.calls import Tell
from components.platform.local_cloud import LocalCloud
from components.platform.runs import NodeRun
from schemas.judge import Judged
from schemas.model import EnvValue

# How the names of tries begin. The rest is the person's, or a few letters that nobody else gets.
PREFIX = "try-"
_BYTES = 3


class TryError(Exception):
    """A try that cannot be started. The text says why and what to do."""


class ChangedError(TryError):
    """The stack file is not what is deployed any more. `fields` are the keys that matter to the job."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        super().__init__(", ".join(fields))
        self.fields = fields


@dataclass(frozen=True)
class WantedTry:
    """`args` None: those of the run that the try is like. `run` None: the job's first run, if it has one."""

    job: str
    run: str | None = None
    name: str = ""
    args: tuple[str, ...] | None = None
    env: Mapping[str, EnvValue] | None = None


@dataclass(frozen=True)
class PlannedTry:
    """`like` is the run that the try repeats, None in a job without runs. Both are plans, made from the stack file."""

    plan: Plan
    job: JobPlan
    like: RunPlan | None
    run: RunPlan

    @property
    def title(self) -> str:
        return f"{self.job.name}/{self.run.name}"


@dataclass(frozen=True)
class ReadyTry:
    """Everything that starting takes. `changes`: what the stack file says otherwise than what is deployed."""

    planned: PlannedTry
    inputs: Mapping[str, Any]
    changes: tuple[str, ...]


def new_name() -> str:
    return PREFIX + secrets.token_hex(_BYTES)


@dataclass(frozen=True)
class TryQuestion:
    """Where the stack is deployed: on the local `cloud`, at the `place` that a person named, or where `config` says."""

    judged: Judged
    config: Mapping[str, Any]
    cloud: LocalCloud | None
    place: str | None
    tell: Tell
    profile: str | None = None


class TryPlatform(Protocol):
    @property
    def region(self) -> str | None:
        """Where the stack is deployed, if not where its file says."""

    def prepare(self, planned: PlannedTry) -> ReadyTry:
        """Finds what is deployed. Raises TryError if that is nothing, or if the caller may not see it."""

    def start(self, ready: ReadyTry) -> Sequence[NodeRun]:
        """Starts every node. If one cannot be started, or the person interrupts, those that were started are ended."""


def try_platform(question: TryQuestion) -> TryPlatform:
    stack = question.judged.stack
    return answers(stack.platform if stack else "").tries(question)
