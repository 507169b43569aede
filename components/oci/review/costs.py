# SPDX-License-Identifier: Apache-2.0
"""What the jobs and the compute targets of a stack cost per hour, by the prices of shapes or a team's own prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.machines import COMPUTE_TARGET, Price, accelerators_of, price_of
from catalog.tables import table
from components.platform.review import Costs, Machines, Snapshot, Standing
from schemas.names import plural


def costs_of(side: Snapshot, prices: Mapping[str, Any]) -> Costs:
    targets: Mapping[str, Any] = side.plan.get("computeTargets") or {}
    jobs = {name: _machines(job, targets, prices) for name, job in (side.plan.get("jobs") or {}).items()}
    return Costs(jobs, tuple(_standing(targets, prices)))


def _machines(job: Mapping[str, Any], targets: Mapping[str, Any], prices: Mapping[str, Any]) -> Machines:
    nodes = sum(int(role["replicas"]) for role in job["roles"])
    if target := job.get("computeTarget"):
        # Machines of a target cost money while it exists, whether a job runs or not, so they are standing costs. The
        # price of an existing target, which the stack did not make, is not known.
        made = bool((targets.get(target) or {}).get("shape"))
        price = Price(0.0, "its machines are paid for as they stand") if made else price_of(COMPUTE_TARGET, prices)
        gpus = int((job.get("share") or {}).get("gpus") or 0)
        return Machines(f"compute target {target}", nodes, gpus, *price, stays=True)
    name = str(job["shape"]["name"])
    return Machines(name, nodes, accelerators_of(name, table("shapes")), *_price(job["shape"], prices))


def _standing(targets: Mapping[str, Any], prices: Mapping[str, Any]) -> Iterator[Standing]:
    for key, target in targets.items():
        shape = target.get("shape")
        if not shape:
            continue
        number = int(target.get("instances") or 0)
        what = f"compute target {key}: {plural(number, 'machine')} of {shape['name']}"
        price = _price(shape, prices)
        yield Standing(what, price.of(number), price.source)


def _price(shape: Mapping[str, Any], prices: Mapping[str, Any]) -> Price:
    return price_of(str(shape["name"]), prices, shape.get("ocpus"), shape.get("memoryGb"))
