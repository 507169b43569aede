# SPDX-License-Identifier: Apache-2.0
"""OCI, as rehearsals ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from components.oci.local import access, evidence, mutations, people, runs
from components.oci.local.file import TARGETS
from components.oci.local.planned import planned_needs
from components.oci.local.stacks import OciLocalPlatform
from components.oci.plan import oci_plan
from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import Tell
from components.platform.status import RunStatus
from localcloud import admin
from localcloud.control import Cloud
from localstacks.place import Place
from rehearsal.calls import AccessFacts, RecordedCall, read_call
from rehearsal.mapping import RehearsedConfig, small_shapes, stand_in_stack
from rehearsal.model import Artifact
from rehearsal.planned import PlannedNeeds
from rehearsing.people import People
from rehearsing.platform import Mutation, Outputs, RehearsalPlatform
from rehearsing.runs import Answers, RunWatch, StartedRun


class OciRehearsalPlatform(RehearsalPlatform):
    local = OciLocalPlatform()

    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        small_shapes(made, name, plan, entry)
        target = made.config.get(TARGETS, {}).get(entry.get("computeTarget"), {})
        if "shape" in target:
            # As many machines as the job has nodes, each of the size that a node asks for.
            target |= {"shape": entry["shape"], "instances": max(target.get("instances", 1), plan.jobs[name].nodes)}

    def stand_in_stack(self, plan: Plan, written: Mapping[str, Any]) -> dict[str, Any]:
        return stand_in_stack(plan, written, ("oci:region", "trainyard:tenancy", "trainyard:compartment"))

    def stand_in_access(self, cloud: Cloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        return access.stand_in_access(cloud, oci_plan(plan), used)

    def stand_in_groups(self, cloud: Cloud, plan: Plan) -> Iterator[str]:
        return access.stand_in_groups(cloud, oci_plan(plan))

    def people_of(self, cloud: Cloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        return people.people_of(cloud, oci_plan(plan), oci_plan(granted).access, outputs)

    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        return planned_needs(oci_plan(plan), oci_plan(network_of), oci_plan(access_of))

    def act_as_people(self, who: People, cloud: Cloud, outputs: Outputs) -> None:
        people.act_as_people(who, cloud, outputs)

    def look_after_runs(self, who: People, cloud: Cloud, outputs: Outputs) -> None:
        people.look_at_metrics(who, cloud)

    def answers(self, cloud: Cloud, outputs: Outputs, place: Place) -> Answers:
        return runs.answers(cloud, outputs, place)

    def start(
        self, who: People, plan: Plan, job: JobPlan, run: RunPlan, outputs: Outputs, answers: Answers, tell: Tell
    ) -> StartedRun:
        return runs.start(who, oci_plan(plan), job, run, outputs, answers, tell)

    def watch(self, who: People, plan: Plan, started: StartedRun, tell: Tell) -> RunWatch:
        return runs.watch(who, oci_plan(plan), started, tell)

    def caller(self, cloud: Cloud, who: People) -> str:
        return evidence.caller(cloud)

    def artifacts(self, cloud: Cloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        return evidence.artifacts(cloud, who, outputs, started)

    def last_lines(self, who: People, seen: RunStatus, tell: Tell) -> Iterator[str]:
        return evidence.last_lines(who, seen, tell)

    def judged_calls(self, cloud: Cloud) -> list[Mapping[str, Any]]:
        return list(admin.list_calls(cloud))

    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        return read_call(row, names)

    def access_facts(self, cloud: Cloud) -> AccessFacts:
        return evidence.access_facts(cloud)

    def without(self, cloud: Cloud, mutation: Mutation) -> AbstractContextManager[None]:
        return mutations.without(cloud, mutation)


PLATFORM = OciRehearsalPlatform()
