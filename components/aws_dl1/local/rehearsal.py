# SPDX-License-Identifier: Apache-2.0
"""AWS DL1, as rehearsals ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from components.aws_dl1.local import access, evidence, grounds, mutations, people, runs
from components.aws_dl1.local.planned import planned_needs
from components.aws_dl1.local.sessions import DEPLOYER, session_of
from components.aws_dl1.local.small_machines import small_machines
from components.aws_dl1.local.stacks import AwsLocalPlatform
from components.aws_dl1.plan import aws_dl1_job, aws_dl1_plan
from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import Tell
from components.platform.runs import NodeRun
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


class AwsRehearsalPlatform(RehearsalPlatform):
    local = AwsLocalPlatform()

    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        small_machines(made, name, plan, entry)

    def stand_in_stack(self, plan: Plan, written: Mapping[str, Any]) -> dict[str, Any]:
        return stand_in_stack(plan, written, ("aws:region", "trainyard:account"))

    def stand_in_access(self, cloud: Cloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        return access.stand_in_access(aws_dl1_plan(plan), used)

    def people_of(self, cloud: Cloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        runs.keep_secrets(session_of(cloud, DEPLOYER, aws_dl1_plan(plan).region), aws_dl1_plan(plan))
        return people.people_of(cloud, aws_dl1_plan(plan), aws_dl1_plan(granted).access)

    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        return planned_needs(aws_dl1_plan(plan), aws_dl1_plan(network_of), aws_dl1_plan(access_of))

    def act_as_people(self, who: People, cloud: Cloud, outputs: Outputs) -> None:
        people.act_as_people(who, outputs)

    def look_after_runs(self, who: People, cloud: Cloud, outputs: Outputs) -> None:
        people.look_at_logs_and_metrics(who, outputs)

    def answers(self, cloud: Cloud, outputs: Outputs, place: Place) -> Answers:
        return runs.answers(outputs)

    def start(
        self, who: People, plan: Plan, job: JobPlan, run: RunPlan, outputs: Outputs, answers: Answers, tell: Tell
    ) -> StartedRun:
        return runs.start(who, aws_dl1_plan(plan), aws_dl1_job(job), run, outputs, answers, tell)

    def watch(self, who: People, plan: Plan, started: StartedRun, tell: Tell) -> RunWatch:
        return runs.watch(who, aws_dl1_plan(plan), started, tell)

    def caller(self, cloud: Cloud, who: People) -> str:
        return evidence.caller(who)

    def artifacts(self, cloud: Cloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        return evidence.artifacts(who, outputs, started)

    def last_lines(self, who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
        return evidence.last_lines(who, seen, tell)

    def hosts(self, outputs: Outputs, job: str, nodes: Iterable[NodeRun]) -> Mapping[str, str]:
        return evidence.hosts(outputs, job, nodes)

    def peers(self, cloud: Cloud, outputs: Outputs) -> Mapping[str, str]:
        return evidence.peers(cloud, outputs)

    def judged_calls(self, cloud: Cloud) -> list[Mapping[str, Any]]:
        return evidence.judged_calls(cloud)

    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        return grounds.read_call(row, names)

    def access_facts(self, cloud: Cloud) -> grounds.AwsGrounds:
        return grounds.access_facts(cloud)

    def without(self, cloud: Cloud, mutation: Mutation) -> AbstractContextManager[None]:
        return mutations.without(cloud, mutation)


PLATFORM = AwsRehearsalPlatform()
