# SPDX-License-Identifier: Apache-2.0
"""A run of a rehearsal: who starts it, the values it gets, its start, and who looks at it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from components.plan.model import JobPlan, Plan, RunPlan
from components.plan.naming import expand
from components.platform.calls import Tell, call_of
from components.platform.errors import ProviderError
from components.platform.input_checks import with_defaults
from components.platform.run_platform import RunPlatform
from components.platform.runs import NodeRun, run_spec
from components.platform.status import RunStatus
from components.platform.values import Properties
from schemas.model import EnvValue, Secret


@dataclass(frozen=True)
class People:
    """In whose name runs are started: `session` is the platform's own, `words` is what a report calls them."""

    session: Any
    words: str
    profile: str | None


class RunWatch(Protocol):
    """A started run, to look at repeatedly."""

    def look(self) -> RunStatus | None: ...
    def cancel(self) -> None: ...


@dataclass(frozen=True)
class Answers:
    """The values of placeholders that only the cloud knows, once the stack is up."""

    values: Mapping[str, str]

    def fill(self, text: str) -> str:
        return expand(text, self.values)

    def environment(self, values: Mapping[str, EnvValue]) -> dict[str, str]:
        return {
            name: value.value or "" if isinstance(value, Secret) else expand(value, self.values)
            for name, value in values.items()
        }

    def document(self, value: Mapping[str, Any]) -> str:
        return expand(json.dumps(value, sort_keys=True, separators=(",", ":")), self.values)


@dataclass(frozen=True)
class StartedRun:
    """A run that was to start. `refused` says why it did not."""

    job: JobPlan
    run: RunPlan
    nodes: tuple[NodeRun, ...] = ()
    refused: str = ""


def start_run(
    who: People, platform: RunPlatform, plan: Plan, job: JobPlan, run: RunPlan, inputs: Properties, tell: Tell
) -> StartedRun:
    """Starts a run with the inputs that `up` would give it. These people wait for no access: it is in force or not."""
    spec = run_spec(f"rehearsal of {plan.stack}: {job.name}/{run.name}", with_defaults(inputs))
    spec = replace(spec, timeouts=replace(spec.timeouts, access=0.0))
    made: list[NodeRun] = []
    try:
        made.extend(platform.ensure(call_of("rehearse", tell), spec, ()))
    except ProviderError as refused:
        return StartedRun(job, run, tuple(made), f"{who.words} could not start it: {refused.cause}")
    return StartedRun(job, run, tuple(made))


class Looks(Protocol):
    """What looks at the runs of one kind."""

    def look(self) -> Sequence[RunStatus]: ...


@dataclass
class LookedAt:
    """`RunWatch` of a run that a platform looks at. `look` wants this run only."""

    platform: RunPlatform
    looker: Looks
    started: StartedRun
    tell: Tell

    def look(self) -> RunStatus | None:
        return next(iter(self.looker.look()), None)

    def cancel(self) -> None:
        self.platform.cancel(call_of("rehearse", self.tell), list(self.started.nodes))
