# SPDX-License-Identifier: Apache-2.0
"""What the jobs and the compute targets of a stack cost per hour, by the prices of shapes or a team's own prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.tables import table
from components.platform.review import Costs, Machines, Snapshot, Standing
from schemas.names import plural

_GIVEN = "the team's own prices"


def costs_of(side: Snapshot, prices: Mapping[str, Any]) -> Costs:
    targets: Mapping[str, Any] = side.plan.get("computeTargets") or {}
    jobs = {name: _machines(job, targets, prices) for name, job in (side.plan.get("jobs") or {}).items()}
    return Costs(jobs, tuple(_standing(targets, prices)))


def _machines(job: Mapping[str, Any], targets: Mapping[str, Any], prices: Mapping[str, Any]) -> Machines:
    nodes = sum(int(role["replicas"]) for role in job["roles"])
    share: Mapping[str, Any] = job.get("share") or {}
    if target := job.get("computeTarget"):
        # Machines of a target cost money while it exists, whether a job runs or not, so they are standing costs. The
        # price of an existing target, which the stack did not make, is not known.
        made = bool((targets.get(target) or {}).get("shape"))
        price, source = (0.0, "its machines are paid for as they stand") if made else (None, "")
        gpus = int(share.get("gpus") or 0)
        return Machines(f"compute target {target}", nodes, gpus, price, source, stays=True)
    shape: Mapping[str, Any] = job["shape"]
    price, source = _price(shape, prices)
    return Machines(str(shape["name"]), nodes, _accelerators(str(shape["name"])), price, source)


def _accelerators(shape: str) -> int:
    return int(table("shapes").get(shape, {}).get("accelerators", 0))


def _standing(targets: Mapping[str, Any], prices: Mapping[str, Any]) -> Iterator[Standing]:
    for key, target in targets.items():
        shape = target.get("shape")
        if not shape:
            continue
        number = int(target.get("instances") or 0)
        price, source = _price(shape, prices)
        what = f"compute target {key}: {plural(number, 'machine')} of {shape['name']}"
        yield Standing(what, None if price is None else price * number, source)


def _price(shape: Mapping[str, Any], prices: Mapping[str, Any]) -> tuple[float | None, str]:
    """The price of one machine per hour. A flexible shape is priced by OCPU and GiB, so it has no price without a
    size."""
    name = str(shape["name"])
    own, rows = prices.get(name), table("shapes")
    row = own if isinstance(own, Mapping) else rows.get(name, {})
    source = str(row.get("source") or (_GIVEN if row is own else table("oci_review")["prices"]["source"]))
    price = _of_row(row, shape)
    return (price, source) if price is not None else (None, "")


def _of_row(row: Mapping[str, Any], shape: Mapping[str, Any]) -> float | None:
    if "usd_per_hour" in row:
        return float(row["usd_per_hour"])
    ocpus, memory = shape.get("ocpus"), shape.get("memoryGb")
    if "usd_per_ocpu_hour" not in row or "usd_per_gib_hour" not in row or ocpus is None or memory is None:
        return None
    return float(row["usd_per_ocpu_hour"]) * float(ocpus) + float(row["usd_per_gib_hour"]) * float(memory)
