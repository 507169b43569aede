# SPDX-License-Identifier: Apache-2.0
"""Compares the jobs with the capacity blocks that they name: whose machines these are, where, and until when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pulumi

from catalog.aws import BLOCK_MACHINES_END_BEFORE, CAPACITY_BLOCK
from components.aws.client.functions import GET_CAPACITY_RESERVATION
from components.aws.plan import AwsDl1Plan, AwsJobPlan
from components.runs import RunProvider
from schemas.findings import Path, Wrong, at
from schemas.name_suggestions import count_noun, quoted_list

_MINUTES = int(BLOCK_MACHINES_END_BEFORE.total_seconds()) // 60
_ANOTHER = "name another block"


def look_up_block(provider: RunProvider, block: str) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = pulumi.runtime.invoke(
        GET_CAPACITY_RESERVATION, {"id": block}, pulumi.InvokeOptions(provider=provider)
    ).value
    return answer


def block_jobs(plan: AwsDl1Plan) -> dict[str, AwsJobPlan]:
    """The jobs whose machines start in a capacity block."""
    return {
        name: job for name, job in plan.jobs.items() if job.cluster.market == CAPACITY_BLOCK and job.cluster.reservation
    }


def block_path(job: str) -> Path:
    return at("jobs", job, "cluster", "reservation")


def find_block_problems(
    name: str, job: AwsJobPlan, block: Mapping[str, Any], nodes: int, now: datetime
) -> Iterator[Wrong]:
    """Why the machines of a job cannot start in a block. What a review cannot know is not judged. `nodes`: of all jobs
    that start in it."""
    cluster = job.cluster
    kind, instance_type = block.get("reservationType"), block.get("instanceType")
    begins, ends = _time(block.get("startDate")), _last_minute(block)
    if kind not in (None, CAPACITY_BLOCK):
        message = f"{cluster.reservation} is not a capacity block but a reservation of On-Demand instances"
        yield Wrong(block_path(name), message, "remove `market`, or name a block")
    elif instance_type not in (None, cluster.instance_type):
        message = f"{cluster.reservation} is a block of {instance_type}, but the job wants {cluster.instance_type}"
        yield Wrong(block_path(name), message, f"{_ANOTHER}, or use `shape: {instance_type}`")
    elif (bought := block.get("totalInstanceCount")) is not None and int(bought) < nodes:
        has = count_noun(int(bought), "machine")
        message = f"{cluster.reservation} has {has}, but its jobs need {nodes}"
        yield Wrong(block_path(name), message, f"{_ANOTHER}, or use fewer nodes")
    elif ends is not None and ends <= now:
        message = (
            f"AWS ended the machines of {cluster.reservation} at {_shown(ends)}, {_MINUTES} minutes before the block"
        )
        yield Wrong(block_path(name), message, f"{_ANOTHER}, or remove the job")
    elif begins is not None and begins > now:
        message = f"{cluster.reservation} begins at {_shown(begins)}: no machine starts in it before"
        yield Wrong(block_path(name), message, f"bring the job up then, or {_ANOTHER} that has begun")


def find_long_runs(name: str, job: AwsJobPlan, block: Mapping[str, Any], now: datetime) -> Iterator[Wrong]:
    """A warning if a run may take longer than its block lasts. One that has ended is a problem of its own."""
    ends = _last_minute(block)
    if ends is None or ends <= now or not job.runs:
        return
    left = int((ends - now).total_seconds() // 60)
    if job.maximum_runtime_minutes > left:
        message = (
            f"a run may take {job.maximum_runtime_minutes} minutes, but AWS ends the machines of "
            f"{job.cluster.reservation} in {left}, at {_shown(ends)}: {_MINUTES} minutes before the block"
        )
        remedy = f"use `maximumRuntimeMinutes: {left}` or less, and let the script keep checkpoints in the bucket"
        yield Wrong(at("jobs", name, "maximumRuntimeMinutes"), message, remedy)


def find_scattered_blocks(zones: Mapping[str, str], plan: AwsDl1Plan, offering: tuple[str, ...]) -> Iterator[Wrong]:
    """Blocks in other zones than the subnet, the machines of other jobs, or one another. `zones`: by job."""
    if len(set(zones.values())) > 1:
        where = ", ".join(f"`{name}` in {zone}" for name, zone in zones.items())
        message = f"the capacity blocks of the jobs lie in several zones ({where}), but a stack has one subnet"
        yield Wrong(at("jobs"), message, "make a stack for each zone")
    for name, zone in zones.items():
        block = plan.jobs[name].cluster.reservation
        if plan.network.zone not in (None, zone):
            message = f"the capacity block {block} of the job `{name}` lies in {zone}"
            yield Wrong(at("network", "zone"), message, f"use `{zone}`, or remove it")
        elif offering and zone not in offering:
            others = quoted_list(sorted({job.shape.name for other, job in plan.jobs.items() if other not in zones}))
            message = f"{block} lies in {zone}, which does not offer {others} of the other jobs"
            yield Wrong(block_path(name), message, "make a stack of its own for this job")


def _last_minute(block: Mapping[str, Any]) -> datetime | None:
    """When AWS ends the machines of a block."""
    ends = _time(block.get("endDate"))
    return None if ends is None else ends - BLOCK_MACHINES_END_BEFORE


def _time(text: Any) -> datetime | None:
    if not text:
        return None
    parsed = datetime.fromisoformat(str(text))
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _shown(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
