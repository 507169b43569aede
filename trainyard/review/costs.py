# SPDX-License-Identifier: Apache-2.0
"""What a stack costs per hour while it is up, and at most for its runs. A sum with an unknown part is unknown."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from catalog.machines import is_price, longest_hours, most_retries
from components.plan.model import RUN_TYPE
from components.platform.review import Machines, ReviewPlatform, Snapshot
from trainyard.review.model import Change, JobCost, StackCosts, StandingCost

_MINUTES = 60


class PricesError(Exception):
    """The file of prices cannot be used. The message is for the user."""


def read_prices(file: Path) -> Mapping[str, Any]:
    """Reads a team's own prices by shape, in the columns of the catalog."""
    try:
        rows = tomllib.loads(file.read_text("utf-8"))
    except OSError as problem:
        raise PricesError(f"{file}: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise PricesError(f"{file}: {problem}") from None
    for name, row in rows.items():
        if not is_price(row):
            raise PricesError(
                f'{file}: {name} has no price; write ["{name}"], and below `usd_per_hour = 1.50`: dollars for one node.'
                " A flexible shape has `usd_per_ocpu_hour` and `usd_per_gib_hour` instead"
            )
    return rows


def stack_costs(
    side: Snapshot, platform: ReviewPlatform, prices: Mapping[str, Any], changes: Iterable[Change]
) -> StackCosts:
    """A run starts if `changes` create or replace it."""
    if not side.plan:
        return StackCosts()
    known = platform.costs(side, prices)
    started = {one.name for one in changes if one.type == RUN_TYPE and one.kind in ("created", "replaced")}
    jobs = tuple(
        _job_cost(name, job, known.jobs.get(name), started) for name, job in (side.plan.get("jobs") or {}).items()
    )
    standing = tuple(StandingCost(one.what, one.usd_per_hour, one.source) for one in known.standing)
    staying = [one.usd_per_hour for one in jobs if one.stays]
    return StackCosts(
        jobs,
        standing,
        _sum([*(one.usd_per_hour for one in standing), *staying]),
        _sum(one.usd_starting for one in jobs if one.starts),
        sum(one.starts for one in jobs),
    )


def _job_cost(name: str, job: Mapping[str, Any], machines: Machines | None, started: set[str]) -> JobCost:
    nodes = machines.nodes if machines else sum(role.get("replicas", 0) for role in job.get("roles") or ())
    runs = job.get("runs") or {}
    starts = sum(f"{name}/{run}" in started for run in runs)
    hours = longest_hours(job.get("maximumRuntimeMinutes"), _retries(runs, machines))
    price = None if machines is None or machines.usd_per_hour is None else machines.usd_per_hour * nodes
    stays = machines.stays if machines else False
    idle = _idle_hours(machines)
    node_hours = _product(hours, nodes)
    return JobCost(
        job=name,
        shape=machines.shape if machines else str((job.get("shape") or {}).get("name", "")),
        nodes=nodes,
        runs=len(runs),
        starts=starts,
        hours=hours,
        node_hours=node_hours,
        gpu_hours=_product(node_hours, machines.accelerators) if machines else None,
        usd_per_hour=price,
        usd_per_run=_product(hours, price),
        usd_starting=_starting(hours, idle, price, starts),
        stays=stays,
        idle_hours=idle,
        source=machines.source if machines else "",
    )


def _retries(runs: Mapping[str, Any], machines: Machines | None) -> int:
    """The largest retry count of any node. Negative: unlimited."""
    launches = (node.get("launch") or {} for run in runs.values() for node in run.get("nodes") or ())
    counts = [int((one.get("retry") or {}).get("count") or 0) for one in launches]
    return most_retries([*counts, machines.retries if machines else 0])


def _idle_hours(machines: Machines | None) -> float | None:
    if machines is None or not machines.stays:
        return 0.0
    return machines.idle_minutes / _MINUTES if machines.idle_minutes else None


def _starting(hours: float | None, idle: float | None, price: float | None, starts: int) -> float | None:
    """The cost of the runs that start, and of one idle time after the last. None if the machines never stop."""
    if not starts:
        return 0.0
    if hours is None or idle is None or price is None:
        return None
    return price * (hours * starts + idle)


def _product(*factors: float | None) -> float | None:
    product = 1.0
    for factor in factors:
        if factor is None:
            return None
        product *= factor
    return product


def _sum(values: Iterable[float | None]) -> float | None:
    listed = list(values)
    return (
        None if any(value is None for value in listed) else float(sum(value for value in listed if value is not None))
    )
