# SPDX-License-Identifier: Apache-2.0
"""Placement groups of clusters that grow and shrink.

A machine gets its place as it starts, from version 1 of its template, which stays as long as the machine. So a cluster
has the group that its template began with: one that shrinks to a single machine is still in it, and AWS deletes no
group with a machine; one that grows from a single machine has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from components.aws.plan import AwsDl1Plan, AwsJobPlan
from components.aws.recorded import Recorded
from schemas.checks.registry import Wrong, at


def keep_placement(plan: AwsDl1Plan, templates: Mapping[str, str], recorded: Recorded) -> AwsDl1Plan:
    """The plan with a group for each cluster whose template has one. `templates`: the names that the plan wants."""
    jobs = {}
    for name, job in plan.jobs.items():
        makes = _has_group(name, job, templates[name], recorded)
        wanted = job.cluster.make_placement_group if makes is None else makes
        jobs[name] = replace(job, cluster=replace(job.cluster, make_placement_group=wanted))
    return replace(plan, jobs=jobs)


def find_unplaced(plan: AwsDl1Plan, templates: Mapping[str, str], recorded: Recorded) -> Iterator[Wrong]:
    """A warning for each cluster that gets machines now, and wants a group that its template does not have."""
    for name, job in plan.jobs.items():
        added = [node for node in job.cluster.nodes if node not in recorded.machines(job)]
        has = _has_group(name, job, templates[name], recorded)
        if added and job.cluster.make_placement_group and has is False:
            message = (
                f"the machines of the job `{name}` start anywhere in their zone, not close together: its first one "
                "began alone, and all start from the same template"
            )
            remedy = (
                "they train all the same; for the fastest network, name a placement group of your own as "
                "`placementGroup`: that replaces the job's machines"
            )
            yield Wrong(at("jobs", name, "cluster"), message, remedy)


def _has_group(name: str, job: AwsJobPlan, template: str, recorded: Recorded) -> bool | None:
    """Whether the template that stays has a group of the stack's own. None if no template stays."""
    there = recorded.one("LaunchTemplate", name, *job.was)
    if there.get("name") != template:
        return None
    named = (there.get("placement") or {}).get("groupName")
    # A state may have the group although the template's latest version does not name it any more.
    return named == job.cluster.name or bool(recorded.one("PlacementGroup", name, *job.was))
