# SPDX-License-Identifier: Apache-2.0
"""OpenPAI, as rehearsals ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from components.openpai.local import evidence
from components.openpai.local.evidence import (
    NOT_PROVEN,
    NoGrounds,
    OpenPaiPlaceholders,
    people_of,
    planned_needs,
    small_tasks,
)
from components.openpai.plan import openpai_job, openpai_plan
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
from components.platform.status import RunStatus


class OpenPaiRehearsalPlatform(RehearsalPlatform):
    place_keys = ("trainyard:cluster",)

    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        small_tasks(made, name, plan, entry)

    def stand_in_access(self, cloud: LocalCloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        return plan, list(NOT_PROVEN)

    def people_of(self, cloud: LocalCloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        return people_of(cloud)

    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        return planned_needs()

    def act_as_people(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        """No policy decides about what they do, so no call of theirs shows anything."""

    def look_after_runs(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        """The same."""

    def answers(self, cloud: LocalCloud, outputs: Outputs, rows: Sequence[Row], folder: Path) -> Placeholders:
        return OpenPaiPlaceholders({}, folder)

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
        if not isinstance(answers, OpenPaiPlaceholders):
            raise TypeError(f"{type(answers).__name__} are another platform's")
        return evidence.start(who, openpai_plan(plan), openpai_job(job), run, answers, tell)

    def watch(self, who: People, plan: Plan, started: StartedRun, tell: Tell) -> RunWatch:
        return evidence.watch(who, plan, started, tell)

    def caller(self, cloud: LocalCloud, who: People) -> str:
        return str(who.session.name)

    def artifacts(self, cloud: LocalCloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        return evidence.artifacts(cloud, started)

    def last_lines(self, who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
        return evidence.last_lines(who, seen, tell)

    def judged_calls(self, cloud: LocalCloud) -> list[Mapping[str, Any]]:
        return []

    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        raise NotImplementedError("no call is judged here")

    def access_facts(self, cloud: LocalCloud) -> NoGrounds:
        return NoGrounds()

    def without(self, cloud: LocalCloud, mutation: Mutation) -> AbstractContextManager[None]:
        raise NotImplementedError("there is nothing to take away here")
