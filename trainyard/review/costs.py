# SPDX-License-Identifier: Apache-2.0
"""What a stack costs per hour while it is up, and at most for its runs. A sum with an unknown part is unknown."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from catalog.machines import is_price, longest_run_hours
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
    started = {change.name for change in changes if change.type == RUN_TYPE and change.kind in ("created", "replaced")}
    jobs = tuple(
        _job_cost(side.platform, name, job, known.jobs.get(name), started)
        for name, job in (side.plan.get("jobs") or {}).items()
    )
    standing = tuple(StandingCost(cost.what, cost.usd_per_hour, cost.source) for cost in known.standing)
    return StackCosts(
        jobs,
        standing,
        _sum_known([*(cost.usd_per_hour for cost in standing), *(job.usd_per_hour for job in jobs if job.never_stops)]),
        _sum_known(job.usd_starting for job in jobs if job.starts),
        sum(job.starts for job in jobs),
    )


def with_later_names(costs: StackCosts, plan: Mapping[str, Any]) -> StackCosts:
    """The costs with the names that jobs have in a later plan, which says how a renamed job was called."""
    jobs: Mapping[str, Any] = plan.get("jobs") or {}
    later = {str(was): name for name, job in jobs.items() for was in job.get("was") or () if was not in jobs}
    return replace(costs, jobs=tuple(replace(job, job=later.get(job.job, job.job)) for job in costs.jobs))


def _job_cost(
    platform: str, name: str, job: Mapping[str, Any], machines: Machines | None, started: set[str]
) -> JobCost:
    # What the platform does not know costs an unknown amount, and stays for no longer than its runs.
    known = machines or Machines(
        str((job.get("shape") or {}).get("name", "")), sum(role.get("replicas", 0) for role in job.get("roles") or ())
    )
    runs = job.get("runs") or {}
    starts = sum(f"{name}/{run}" in started for run in runs)
    hours = longest_run_hours(platform, job.get("maximumRuntimeMinutes"), known.retries)
    node_hours = _multiply_known(hours, known.nodes)
    price = None if known.usd_per_hour is None else known.usd_per_hour * known.nodes
    # None: they never stop.
    idle = 0.0 if not known.stays else known.idle_minutes / _MINUTES if known.idle_minutes else None
    starting: float | None = 0.0
    if starts:
        # Machines wait once, after the last run.
        starting = None if hours is None or idle is None else _multiply_known(price, hours * starts + idle)
    return JobCost(
        job=name,
        shape=known.shape,
        nodes=known.nodes,
        runs=len(runs),
        starts=starts,
        hours=hours,
        node_hours=node_hours,
        gpu_hours=_multiply_known(node_hours, known.accelerators) if machines else None,
        usd_per_hour=price,
        usd_per_run=_multiply_known(hours, price),
        usd_starting=starting,
        stays=known.stays,
        idle_hours=idle,
        source=known.source,
    )


def _multiply_known(*factors: float | None) -> float | None:
    product = 1.0
    for factor in factors:
        if factor is None:
            return None
        product *= factor
    return product


def _sum_known(values: Iterable[float | None]) -> float | None:
    listed = list(values)
    return (
        None if any(value is None for value in listed) else float(sum(value for value in listed if value is not None))
    )
