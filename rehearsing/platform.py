# SPDX-License-Identifier: Apache-2.0
"""What a rehearsal needs to know of the platform it stands in for; each platform's folder answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Protocol

from catalog.platforms import platform_folder
from components.plan.model import JobPlan, Plan, RunPlan
from localcloud.control import Cloud
from localstacks.place import Place
from localstacks.platform import LocalPlatform
from provider.base.asking import Tell
from rehearsal.calls import AccessFacts
from rehearsal.model import Artifact
from rehearsal.mutations import RuleMutation, StatementMutation
from rehearsal.planned import PlannedNeeds
from rehearsing.people import People
from rehearsing.runs import Answers, Started, Watch
from runstatus.seen import RunStatus

Mutation = RuleMutation | StatementMutation
Outputs = Mapping[str, Any]


class RehearsalPlatform(Protocol):
    @property
    def local(self) -> LocalPlatform: ...

    def stand_in_access(self, cloud: Cloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        """The plan by which access is given, and what had to be made that exists elsewhere."""

    def stand_in_groups(self, cloud: Cloud, plan: Plan) -> Iterator[str]:
        """Makes the groups that the stack names and that exist elsewhere; says which."""

    def people(self, cloud: Cloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        """In whose name runs are started. `granted` is the plan that says to whom access is given."""

    def needed(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        """The rules and statements that the plans ask for; network and access may be those of other stacks."""

    def everyday(self, who: People, cloud: Cloud, outputs: Outputs) -> None:
        """What people do around their runs, as far as the stack grants it."""

    def look_at_metrics(self, who: People, cloud: Cloud) -> None:
        """What people do after a run."""

    def answers(self, cloud: Cloud, outputs: Outputs, place: Place) -> Answers:
        """What only the cloud can answer."""

    def start(
        self, who: People, plan: Plan, job: JobPlan, run: RunPlan, outputs: Outputs, answers: Answers, tell: Tell
    ) -> Started:
        """Starts a run in the name of its people, or says why it did not start."""

    def watch(self, who: People, plan: Plan, started: Started, tell: Tell) -> Watch:
        """A look at the run, for as long as one likes."""

    def caller(self, cloud: Cloud) -> str:
        """What the cloud's record of calls names the people by."""

    def artifacts(self, cloud: Cloud, who: People, outputs: Outputs, started: Started) -> Iterator[Artifact]:
        """What a run left in the bucket, as its people see it."""

    def last_lines(self, who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
        """What the ranks that did not succeed printed last, as the run's people read it."""

    def grounds(self, cloud: Cloud) -> AccessFacts:
        """What decisions on access rest on: the policies in force."""

    def without(self, cloud: Cloud, mutation: Mutation) -> AbstractContextManager[None]:
        """The cloud without one rule or statement, as long as the context lasts."""


def rehearsal_platform_of(name: str) -> RehearsalPlatform:
    found: RehearsalPlatform = import_module(f"rehearsing.{platform_folder(name)}.platform").PLATFORM
    return found
