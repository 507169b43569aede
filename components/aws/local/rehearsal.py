# SPDX-License-Identifier: Apache-2.0
"""AWS DL1, as rehearsals ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from components.aws.client.session import DEPLOYER, session_of
from components.aws.local import evidence, mutations, people
from components.aws.local.evidence import planned_needs
from components.aws.local.people import small_machines
from components.aws.plan import aws_dl1_job, aws_dl1_plan
from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import Tell
from components.platform.evidence import Mutation, PlannedNeeds, RecordedCall
from components.platform.local import Outputs, Row
from components.platform.local_cloud import LocalCloud
from components.platform.rehearsal import (
    Artifact,
    People,
    Placeholders,
    RehearsalPlatform,
    RehearsedConfig,
    RunWatch,
    StartedRun,
)
from components.platform.runs import NodeRun
from components.platform.status import RunStatus


class AwsRehearsalPlatform(RehearsalPlatform):
    place_keys = ("aws:region", "trainyard:account")

    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        small_machines(made, name, plan, entry)

    def stand_in_access(self, cloud: LocalCloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        return people.stand_in_access(aws_dl1_plan(plan), used)

    def people_of(self, cloud: LocalCloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        people.keep_secrets(session_of(cloud, DEPLOYER, aws_dl1_plan(plan).region), aws_dl1_plan(plan))
        return people.people_of(cloud, aws_dl1_plan(plan), aws_dl1_plan(granted).access)

    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        return planned_needs(aws_dl1_plan(plan), aws_dl1_plan(network_of), aws_dl1_plan(access_of))

    def act_as_people(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        people.act_as_people(who, outputs)

    def look_after_runs(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        people.look_at_logs_and_metrics(who, outputs)

    def answers(self, cloud: LocalCloud, outputs: Outputs, rows: Sequence[Row], folder: Path) -> Placeholders:
        return people.answers(outputs)

    def start(
        self,
        who: People,
        plan: Plan,
        job: JobPlan,
        run: RunPlan,
        outputs: Outputs,
        answers: Placeholders,
        tell: Tell,
    ) -> StartedRun:
        return people.start(who, aws_dl1_plan(plan), aws_dl1_job(job), run, outputs, answers, tell)

    def watch(self, who: People, plan: Plan, started: StartedRun, tell: Tell) -> RunWatch:
        return people.watch(who, aws_dl1_plan(plan), started, tell)

    def caller(self, cloud: LocalCloud, who: People) -> str:
        return evidence.caller(who)

    def artifacts(self, cloud: LocalCloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        return evidence.artifacts(who, outputs, started)

    def last_lines(self, who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
        return evidence.last_lines(who, seen, tell)

    def hosts(self, outputs: Outputs, job: str, nodes: Iterable[NodeRun]) -> Mapping[str, str]:
        return evidence.hosts(outputs, job, nodes)

    def peers(self, cloud: LocalCloud, outputs: Outputs) -> Mapping[str, str]:
        return evidence.peers(cloud, outputs)

    def judged_calls(self, cloud: LocalCloud) -> list[Mapping[str, Any]]:
        return evidence.judged_calls(cloud)

    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        return evidence.read_call(row, names)

    def access_facts(self, cloud: LocalCloud) -> evidence.AwsGrounds:
        return evidence.access_facts(cloud)

    def without(self, cloud: LocalCloud, mutation: Mutation) -> AbstractContextManager[None]:
        return mutations.without(cloud, mutation)
