# SPDX-License-Identifier: Apache-2.0
"""A try as values: what a person wants to start, and what that is in the terms of the plan."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.plan.model import JobPlan, Plan, RunPlan
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
