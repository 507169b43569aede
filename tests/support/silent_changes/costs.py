# SPDX-License-Identifier: Apache-2.0
"""What runs, and what stands between them, can cost more."""

from __future__ import annotations

from typing import Any

from tests.support.silence import AWS, SilentChange

COST = frozenset({"cost"})


def _job_on_a_compute_target(document: dict[str, Any]) -> None:
    """As docs/production.md has it."""
    config = document["config"]
    config["trainyard:computeTargets"] = {"pool": {"shape": "VM.GPU.A10.1", "instances": 4}}
    config["trainyard:jobs"]["resnet"].update(computeTarget="pool", layout="node-groups")


def _job_of(document: dict[str, Any]) -> dict[str, Any]:
    job: dict[str, Any] = document["config"]["trainyard:jobs"]["resnet"]
    return job


def _without_runs(document: dict[str, Any]) -> None:
    del _job_of(document)["runs"]


def _reorder_jobs(document: dict[str, Any]) -> None:
    jobs = document["config"]["trainyard:jobs"]
    document["config"]["trainyard:jobs"] = dict(reversed(jobs.items()))


CHANGES = (
    SilentChange(
        number=6,
        title="a compute target with node groups grows",
        before=_job_on_a_compute_target,
        change=lambda document: document["config"]["trainyard:computeTargets"]["pool"].update(instances=400),
        shows=(
            "$800.00 an hour standing (was $8.00)",
            "compute target pool: 400 machines of VM.GPU.A10.1: $800.00 an hour while the stack is up",
        ),
        # 730 hours of $800.
        trips=COST,
    ),
    SilentChange(
        number=13,
        title="a shape whose price is forty times higher",
        before=_without_runs,
        change=lambda document: _job_of(document).update(shape="BM.GPU.H100.8", options={"processes": 8}),
        # 4 nodes x 24 hours x ($80 and $2, and 100 GB x $0.0000571).
        shows=("costs at most $7,680.55 a run (was at most $192.55)",),
    ),
    SilentChange(
        number=13,
        title="a hundred nodes in a job without runs",
        before=_without_runs,
        change=lambda document: _job_of(document).update(
            shape="BM.GPU.H100.8",
            options={"processes": 8},
            maximumRuntimeMinutes=43200,
            roles={"main": 1, "worker": 99},
        ),
        shows=("costs at most $5,760,411.12 a run (was at most $192.55)",),
        trips=COST,
    ),
    SilentChange(
        number=13,
        title="a gateway without a price",
        stack=AWS,
        change=lambda document: document["config"]["trainyard:network"].update(nat=True),
        shows=("an unknown amount an hour standing", "1 NAT gateway: unknown while the stack is up"),
        trips=COST,
    ),
    SilentChange(
        number=14,
        title="large disks",
        before=_without_runs,
        change=lambda document: _job_of(document).update(blockStorageGb=10000),
        shows=("costs at most $246.82 a run (was at most $192.55)",),
    ),
    SilentChange(
        number=22,
        title="jobs in another order",
        before=lambda document: document["config"]["trainyard:jobs"].update(second=dict(_job_of(document))),
        change=_reorder_jobs,
        shows=(),
        stays_silent=True,
    ),
)
