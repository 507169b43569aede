# SPDX-License-Identifier: Apache-2.0
"""Finds what the stack made and its file no longer asks for, and warns about its contents before anything happens.

A program cannot read its own state. The outputs of the last `up` say what there is, and what of it the stack made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from components.aws_dl1.plan import AwsDl1Plan
from components.outputs import PROTECTED, Outputs
from components.refusal import RefusedError
from schemas.checks.registry import Wrong, at
from schemas.names import listing

_Look = Callable[[AwsDl1Plan, Outputs], Iterator[Wrong]]


def find_departures(plan: AwsDl1Plan, before: Outputs) -> Iterator[Wrong]:
    """A warning for each thing with contents that this `up` would give up. Raises RefusedError for another region."""
    _require_same_region(plan, before)
    made = before.get("made") or ()
    looks: dict[str, _Look] = {"bucket": _bucket, "registry": _repository, "logs": _logs}
    for concern, look in looks.items():
        if concern in made:
            yield from look(plan, before)
    yield from _machines(plan, before)


def _require_same_region(plan: AwsDl1Plan, before: Outputs) -> None:
    there = before.get("region")
    if there and there != plan.region:
        message = f"the stack is in {there}, and AWS cannot move it to another region"
        remedy = "use that region again, and make a new stack for the other one (docs/leaving.md)"
        raise RefusedError([Wrong(("config", "aws:region"), message, remedy)])


def _bucket(plan: AwsDl1Plan, before: Outputs) -> Iterator[Wrong]:
    old = before.get("bucket")
    if not old or ("bucket" not in plan.taken and old == plan.bucket.name):
        return
    fate = PROTECTED if plan.bucket.keep else "Pulumi deletes it with everything in it, unless it was kept until now"
    remedy = f"to keep it, write `bucket: {{ name: {old} }}`; else copy what you need first"
    yield Wrong(at("bucket"), f"nothing moves the objects of the bucket `{old}`. {fate}", remedy)


def _repository(plan: AwsDl1Plan, before: Outputs) -> Iterator[Wrong]:
    old = str(before.get("imagePushAddress") or "").partition("/")[2]
    if not old or ("registry" not in plan.taken and old == plan.registry.repository):
        return
    fate = PROTECTED if plan.registry.keep else "AWS deletes them with it, unless it was kept until now"
    message = f"nothing moves the images of the repository `{old}`. {fate}"
    remedy = f"to keep it, write `registry: {{ repository: {old} }}`; else push the images of the jobs again"
    yield Wrong(at("registry"), message, remedy)


def _logs(plan: AwsDl1Plan, before: Outputs) -> Iterator[Wrong]:
    old = before.get("logGroup")
    if not old or (plan.logs.enabled and "logs" not in plan.taken and old == plan.logs.group_name):
        return
    message = f"the log group `{old}` is deleted, with everything that runs printed"
    yield Wrong(at("logs"), message, "first copy what you need (`trainyard runs logs`)")


def _machines(plan: AwsDl1Plan, before: Outputs) -> Iterator[Wrong]:
    """Machines of a removed job, or of a job with fewer nodes. What trains on them ends."""
    jobs: Mapping[str, Any] = before.get("jobs") or {}
    kept = {was for job in plan.jobs.values() for was in (job.name, *job.was)}
    for name, job in jobs.items():
        here = next((one for one in plan.jobs.values() if name in (one.name, *one.was)), None)
        nodes = [node for node in job.get("instances") or () if here is None or node not in here.cluster.nodes]
        if nodes:
            place = at("jobs", name) if name in kept else at("jobs")
            message = f"the machines {listing(nodes)} of the job `{name}` are terminated, with what trains on them"
            yield Wrong(place, message, "let their runs end first, or leave the job as it is")
