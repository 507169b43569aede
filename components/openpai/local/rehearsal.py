# SPDX-License-Identifier: Apache-2.0
"""OpenPAI, as rehearsals ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from components.openpai.local import evidence, runs
from components.openpai.local.grounds import NOT_PROVEN, NoGrounds, planned_needs
from components.openpai.local.people import people_of
from components.openpai.local.runs import OpenPaiAnswers
from components.openpai.local.small_machines import small_tasks
from components.openpai.local.stacks import OpenPaiLocalPlatform
from components.openpai.plan import openpai_job, openpai_plan
from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import Tell
from components.platform.status import RunStatus
from localcloud.control import Cloud
from localstacks.place import Place
from rehearsal.calls import RecordedCall
from rehearsal.mapping import RehearsedConfig, stand_in_stack
from rehearsal.model import Artifact
from rehearsal.planned import PlannedNeeds
from rehearsing.people import People
from rehearsing.platform import Mutation, Outputs, RehearsalPlatform
from rehearsing.runs import Answers, RunWatch, StartedRun


class OpenPaiRehearsalPlatform(RehearsalPlatform):
    local = OpenPaiLocalPlatform()

    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        small_tasks(made, name, plan, entry)

    def stand_in_stack(self, plan: Plan, written: Mapping[str, Any]) -> dict[str, Any]:
        return stand_in_stack(plan, written, ("trainyard:cluster",))

    def stand_in_access(self, cloud: Cloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        return plan, list(NOT_PROVEN)

    def people_of(self, cloud: Cloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        return people_of(cloud)

    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        return planned_needs()

    def act_as_people(self, who: People, cloud: Cloud, outputs: Outputs) -> None:
        """No policy decides about what they do, so no call of theirs shows anything."""

    def look_after_runs(self, who: People, cloud: Cloud, outputs: Outputs) -> None:
        """The same."""

    def answers(self, cloud: Cloud, outputs: Outputs, place: Place) -> Answers:
        return OpenPaiAnswers({}, place.file.parent)

    def start(
        self, who: People, plan: Plan, job: JobPlan, run: RunPlan, outputs: Outputs, answers: Answers, tell: Tell
    ) -> StartedRun:
        if not isinstance(answers, OpenPaiAnswers):
            raise TypeError(f"{type(answers).__name__} are another platform's")
        return runs.start(who, openpai_plan(plan), openpai_job(job), run, answers, tell)

    def watch(self, who: People, plan: Plan, started: StartedRun, tell: Tell) -> RunWatch:
        return runs.watch(who, plan, started, tell)

    def caller(self, cloud: Cloud, who: People) -> str:
        return str(who.session.name)

    def artifacts(self, cloud: Cloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        return evidence.artifacts(cloud, started)

    def last_lines(self, who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
        return evidence.last_lines(who, seen, tell)

    def judged_calls(self, cloud: Cloud) -> list[Mapping[str, Any]]:
        return []

    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        raise NotImplementedError("no call is judged here")

    def access_facts(self, cloud: Cloud) -> NoGrounds:
        return NoGrounds()

    def without(self, cloud: Cloud, mutation: Mutation) -> AbstractContextManager[None]:
        raise NotImplementedError("there is nothing to take away here")


PLATFORM = OpenPaiRehearsalPlatform()
