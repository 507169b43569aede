# SPDX-License-Identifier: Apache-2.0
"""What a rehearsal needs to know of the platform it stands in for, and the values that both speak in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from components.plan.model import JobPlan, Plan, RunPlan, expand
from components.platform.calls import ProviderError, Tell, call_of
from components.platform.evidence import Grounds, Mutation, PlannedNeeds, RecordedCall
from components.platform.inputs import with_defaults
from components.platform.local import Outputs, Row
from components.platform.local_cloud import LocalCloud
from components.platform.runs import NodeRun, RunPlatform, run_spec
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


@dataclass
class RehearsedConfig:
    """The configuration to rehearse, and its differences from the written one."""

    config: dict[str, Any]
    differences: list[str] = field(default_factory=list)
    # What cannot be rehearsed here at all, by job.
    not_rehearsed: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Artifact:
    """An object that a run left in the bucket."""

    name: str
    bytes: int


class RehearsalPlatform(Protocol):
    """What has a body is what most platforms answer: a platform's own class inherits it."""

    # Keys of a stack file that say where a stack is: a stand-in for the one it uses has them, too.
    place_keys: tuple[str, ...]

    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        """Makes a job of a file small enough for this machine, and says what that changes."""

    def stand_in_access(self, cloud: LocalCloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        """The plan that gives access, and remarks on what was made because it exists elsewhere."""

    def stand_in_groups(self, cloud: LocalCloud, plan: Plan) -> Iterator[str]:
        """Make the groups that the stack names but that exist elsewhere, with a remark for each."""
        return iter(())

    def people_of(self, cloud: LocalCloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        """The people who start the runs. `granted` is the plan that says to whom access is given."""

    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        """The rules and statements that the plans ask for; network and access may be those of other stacks."""

    def act_as_people(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        """Make the calls that people make around their runs. Those that the stack does not grant are refused."""

    def look_after_runs(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        """What people do after a run."""

    def answers(self, cloud: LocalCloud, outputs: Outputs, rows: Sequence[Row], folder: Path) -> Answers:
        """The values that only the cloud knows. `rows` are the stack's resources; its file lies in `folder`."""

    def start(
        self, who: People, plan: Plan, job: JobPlan, run: RunPlan, outputs: Outputs, answers: Answers, tell: Tell
    ) -> StartedRun:
        """Starts a run in the name of its people, or says why it did not start."""

    def watch(self, who: People, plan: Plan, started: StartedRun, tell: Tell) -> RunWatch:
        """A watch on the run."""

    def caller(self, cloud: LocalCloud, who: People) -> str:
        """The name of the people in the cloud's record of calls."""

    def artifacts(self, cloud: LocalCloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        """What a run left in the bucket, as its people see it."""

    def last_lines(self, who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
        """What the ranks that did not succeed printed last, as the run's people read it."""

    def hosts(self, outputs: Outputs, job: str, nodes: Iterable[NodeRun]) -> Mapping[str, str]:
        """By the id of each node's run: the id under which the local cloud has evidence of the machine.

        It is the same one where each run has machines of its own.
        """
        return {node.id: node.id for node in nodes}

    def peers(self, cloud: LocalCloud, outputs: Outputs) -> Mapping[str, str]:
        """What rules name by ids, in words."""
        return {}

    def judged_calls(self, cloud: LocalCloud) -> list[Mapping[str, Any]]:
        """The calls that the stack's own policies decided."""

    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        """Reads one of them. `names` are those of callers in reports, by the ids of people and machines."""

    def access_facts(self, cloud: LocalCloud) -> Grounds:
        """The facts that decide access: the policies in force."""

    def without(self, cloud: LocalCloud, mutation: Mutation) -> AbstractContextManager[None]:
        """The cloud without one rule or statement, as long as the context lasts."""
