# SPDX-License-Identifier: Apache-2.0
"""OCI, as rehearsals ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from components.oci.local import evidence, people
from components.oci.local.evidence import planned_needs
from components.oci.local.grounds import OciGrounds, read_call
from components.oci.local.people import small_shapes
from components.oci.local.stack import TARGETS
from components.oci.plan import oci_plan
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
from localcloud import admin


class OciRehearsalPlatform(RehearsalPlatform):
    place_keys = ("oci:region", "trainyard:tenancy", "trainyard:compartment")

    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        small_shapes(made, name, plan, entry)
        target = made.config.get(TARGETS, {}).get(entry.get("computeTarget"), {})
        if "shape" in target:
            # As many machines as the job has nodes, each of the size that a node asks for.
            target |= {"shape": entry["shape"], "instances": max(target.get("instances", 1), plan.jobs[name].nodes)}

    def stand_in_access(self, cloud: LocalCloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        return people.stand_in_access(cloud, oci_plan(plan), used)

    def stand_in_groups(self, cloud: LocalCloud, plan: Plan) -> Iterator[str]:
        return people.stand_in_groups(cloud, oci_plan(plan))

    def people_of(self, cloud: LocalCloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        return people.people_of(cloud, oci_plan(plan), oci_plan(granted).access, outputs)

    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        return planned_needs(oci_plan(plan), oci_plan(network_of), oci_plan(access_of))

    def act_as_people(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        people.act_as_people(who, cloud, outputs)

    def look_after_runs(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        people.look_at_metrics(who, cloud)

    def answers(self, cloud: LocalCloud, outputs: Outputs, rows: Sequence[Row], folder: Path) -> Placeholders:
        return people.answers(cloud, outputs, rows)

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
        return people.start(who, oci_plan(plan), job, run, outputs, answers, tell)

    def watch(self, who: People, plan: Plan, started: StartedRun, tell: Tell) -> RunWatch:
        return people.watch(who, oci_plan(plan), started, tell)

    def caller(self, cloud: LocalCloud, who: People) -> str:
        return evidence.caller(cloud)

    def artifacts(self, cloud: LocalCloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        return evidence.artifacts(cloud, who, outputs, started)

    def last_lines(self, who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
        return evidence.last_lines(who, seen, tell)

    def judged_calls(self, cloud: LocalCloud) -> list[Mapping[str, Any]]:
        return list(admin.list_calls(cloud))

    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        return read_call(row, names)

    def access_facts(self, cloud: LocalCloud) -> OciGrounds:
        return evidence.access_facts(cloud)

    def without(self, cloud: LocalCloud, mutation: Mutation) -> AbstractContextManager[None]:
        return evidence.without(cloud, mutation)
