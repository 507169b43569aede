# SPDX-License-Identifier: Apache-2.0
"""What the machines of a stack cost per hour, and further costs. The team gives the prices: none is built in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.machines import accelerators_of, price_of
from catalog.tables import table
from components.platform.review import Costs, Machines, Snapshot, Standing
from schemas.names import plural


def costs_of(side: Snapshot, prices: Mapping[str, Any]) -> Costs:
    jobs = {name: _machines(job["cluster"], prices) for name, job in (side.plan.get("jobs") or {}).items()}
    return Costs(jobs, tuple(_standing(side, prices)))


def _machines(cluster: Mapping[str, Any], prices: Mapping[str, Any]) -> Machines:
    """The costs of machines, which stay between runs and stop when they are idle."""
    shape = str(cluster["instanceType"])
    gpus = accelerators_of(shape, table("aws_dl1")["shapes"])
    idle, nodes = int(cluster.get("stopWhenIdleMinutes") or 0), len(cluster["nodes"])
    return Machines(shape, nodes, gpus, *price_of(shape, prices), True, idle)


def _standing(side: Snapshot, prices: Mapping[str, Any]) -> Iterator[Standing]:
    for row in table("aws_review")["standing"]:
        only = row.get("only", {})
        number = sum(all(one.inputs.get(key) == value for key, value in only.items()) for one in side.of(row["type"]))
        if number:
            price = price_of(row["what"], prices)
            yield Standing(plural(number, row["what"]), price.of(number), price.source)
    yield from _disks(side)


def _disks(side: Snapshot) -> Iterator[Standing]:
    """The costs of disks, also while machines are stopped."""
    sizes = Counter(
        int(job["cluster"].get("diskGb") or 0)
        for job in (side.plan.get("jobs") or {}).values()
        for _ in job["cluster"]["nodes"]
    )
    if total := sum(size * number for size, number in sizes.items()):
        yield Standing(f"disks of the machines: {total} GB, also while they are stopped", None)
