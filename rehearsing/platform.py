# SPDX-License-Identifier: Apache-2.0
"""What a rehearsal needs to know of the platform it stands in for; each platform's folder answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from catalog.platforms import import_platform
from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import Tell
from components.platform.runs import NodeRun
from components.platform.status import RunStatus
from localcloud.control import Cloud
from localstacks.place import Place
from localstacks.platform import LocalPlatform
from rehearsal.calls import Grounds, RecordedCall
from rehearsal.mapping import RehearsedConfig
from rehearsal.model import Artifact
from rehearsal.mutations import RuleMutation, StatementMutation
from rehearsal.planned import PlannedNeeds
from rehearsing.people import People
from rehearsing.runs import Answers, RunWatch, StartedRun

Mutation = RuleMutation | StatementMutation
Outputs = Mapping[str, Any]


class RehearsalPlatform(Protocol):
    """What has a body is what most platforms answer: a platform's own class inherits it."""

    local: LocalPlatform

    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        """Makes a job of a file small enough for this machine, and says what that changes."""

    def stand_in_stack(self, plan: Plan, written: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration of a stack that stands in for the one that a plan uses. `written`: the plan's own file."""

    def stand_in_access(self, cloud: Cloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        """The plan that gives access, and remarks on what was made because it exists elsewhere."""

    def stand_in_groups(self, cloud: Cloud, plan: Plan) -> Iterator[str]:
        """Make the groups that the stack names but that exist elsewhere, with a remark for each."""
        return iter(())

    def people_of(self, cloud: Cloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        """The people who start the runs. `granted` is the plan that says to whom access is given."""

    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        """The rules and statements that the plans ask for; network and access may be those of other stacks."""

    def act_as_people(self, who: People, cloud: Cloud, outputs: Outputs) -> None:
        """Make the calls that people make around their runs. Those that the stack does not grant are refused."""

    def look_after_runs(self, who: People, cloud: Cloud, outputs: Outputs) -> None:
        """What people do after a run."""

    def answers(self, cloud: Cloud, outputs: Outputs, place: Place) -> Answers:
        """The values that only the cloud knows."""

    def start(
        self, who: People, plan: Plan, job: JobPlan, run: RunPlan, outputs: Outputs, answers: Answers, tell: Tell
    ) -> StartedRun:
        """Starts a run in the name of its people, or says why it did not start."""

    def watch(self, who: People, plan: Plan, started: StartedRun, tell: Tell) -> RunWatch:
        """A watch on the run."""

    def caller(self, cloud: Cloud, who: People) -> str:
        """The name of the people in the cloud's record of calls."""

    def artifacts(self, cloud: Cloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        """What a run left in the bucket, as its people see it."""

    def last_lines(self, who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
        """What the ranks that did not succeed printed last, as the run's people read it."""

    def hosts(self, outputs: Outputs, job: str, nodes: Iterable[NodeRun]) -> Mapping[str, str]:
        """By the id of each node's run: the id under which the local cloud has evidence of the machine.

        It is the same one where each run has machines of its own.
        """
        return {node.id: node.id for node in nodes}

    def peers(self, cloud: Cloud, outputs: Outputs) -> Mapping[str, str]:
        """What rules name by ids, in words."""
        return {}

    def judged_calls(self, cloud: Cloud) -> list[Mapping[str, Any]]:
        """The calls that the stack's own policies decided."""

    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        """Reads one of them. `names` are those of callers in reports, by the ids of people and machines."""

    def access_facts(self, cloud: Cloud) -> Grounds:
        """The facts that decide access: the policies in force."""

    def without(self, cloud: Cloud, mutation: Mutation) -> AbstractContextManager[None]:
        """The cloud without one rule or statement, as long as the context lasts."""


def rehearsal_platform_of(name: str) -> RehearsalPlatform:
    platform: RehearsalPlatform = import_platform(name, "local.rehearsal").PLATFORM
    return platform
