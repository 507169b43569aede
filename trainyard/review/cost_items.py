# SPDX-License-Identifier: Apache-2.0
"""What a change costs, in words: the section `Costs`, its part of the verdict, and what the gate `cost=N` judges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from schemas.name_suggestions import count_noun
from trainyard.review.model import JobCost, Review, StackCosts

# Hours in a month, as clouds count them.
MONTH_HOURS = 730
_UNKNOWN = "an unknown amount"


def format_dollars(dollars: float | None) -> str:
    return _UNKNOWN if dollars is None else f"${dollars:,.2f}"


def cost_verdict(review: Review) -> Iterator[str]:
    """What a run of the jobs that cost something else costs at most, and what costs money while nothing runs."""
    costs, earlier = review.costs, review.costs_before
    is_compared = review.kind == "changed"
    if differing := costs.jobs_that_differ(earlier):
        was = [job for job, _ in differing if job is not None]
        text = f"costs {_most_of_a_run(job for _, job in differing)} a run"
        yield text + (f" (was {_most_of_a_run(was)})" if was and is_compared else "")
    if costs.stands_otherwise(earlier):
        now, was_standing = _standing_words(costs), _standing_words(earlier)
        yield f"{now} an hour standing" + (f" (was {was_standing})" if is_compared and now != was_standing else "")
    if costs.starts:
        most = costs.usd_starting
        cost = "an unknown cost" if most is None else f"at most {format_dollars(most)}"
        yield f"starts {count_noun(costs.starts, 'run')} for {cost}"


def _most_of_a_run(jobs: Iterable[JobCost]) -> str:
    of_a_run = [job.usd_per_run for job in jobs]
    known = [usd for usd in of_a_run if usd is not None]
    return f"at most {format_dollars(max(known))}" if len(known) == len(of_a_run) else _UNKNOWN


def _standing_words(costs: StackCosts) -> str:
    if costs.usd_per_hour is not None:
        return format_dollars(costs.usd_per_hour)
    return f"at least {format_dollars(costs.known_usd_per_hour)}" if costs.known_usd_per_hour else _UNKNOWN


def costs_above(review: Review, limit: float) -> Iterator[str]:
    """Each part of the change that can cost more than the limit, or an unknown amount: all runs that it starts, one run
    of a job that it makes dearer, and a month of what it lets stand."""
    costs, earlier = review.costs, review.costs_before
    parts = [("its runs", costs.usd_starting)] if costs.starts else []
    parts += [
        (f"a run of the job {job.job}", job.usd_per_run)
        for was, job in costs.jobs_that_differ(earlier)
        if _is_dearer(was.usd_per_run if was else 0.0, job.usd_per_run)
    ]
    if costs.stands_otherwise(earlier) and _is_dearer(earlier.usd_per_hour, costs.usd_per_hour):
        month = None if costs.usd_per_hour is None else costs.usd_per_hour * MONTH_HOURS
        parts.append(("what stands, in a month of 730 hours,", month))
    for what, most in parts:
        if most is None:
            yield f"what {what} can cost is not known, so it is not known to be below {format_dollars(limit)}"
        elif most > limit:
            yield f"{what} can cost {format_dollars(most)}, above {format_dollars(limit)}"


def _is_dearer(before: float | None, after: float | None) -> bool:
    """What is not known may be dearer."""
    return before is None or after is None or after > before


def cost_items(review: Review) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each line of the section, with its details."""
    costs, earlier_costs = review.costs, review.costs_before
    differing = {job.job: was for was, job in costs.jobs_that_differ(earlier_costs)}
    for job in costs.jobs:
        if job.starts or job.job in differing:
            yield _job_item(job, differing.get(job.job))
    still_there = {job.job for job in costs.jobs}
    yield from (
        (f"job {job.job}: no longer costs anything", ()) for job in earlier_costs.jobs if job.job not in still_there
    )
    if not costs.stands_otherwise(earlier_costs):
        return
    for cost in costs.standing:
        if cost not in earlier_costs.standing:
            price = f"{format_dollars(cost.usd_per_hour)} an hour" if cost.usd_per_hour is not None else "unknown"
            yield f"{cost.what}: {price} while the stack is up", _price_source(cost.source)
    now, before = _standing_words(costs), _standing_words(earlier_costs)
    if review.kind != "removed" and now != before:
        was = f" (before: {before})" if review.kind != "new" else ""
        yield f"while the stack is up: {now} an hour{was}", ()


def _job_item(job: JobCost, before: JobCost | None) -> tuple[str, tuple[str, ...]]:
    details = list(_price_source(job.source))
    if job.stays:
        idle = (
            f"{job.idle_hours:,.1f} hours after the last run" if job.idle_hours is not None else "never by themselves"
        )
        price = f"{format_dollars(job.usd_per_hour)} an hour" if job.usd_per_hour is not None else "at an unknown price"
        details.append(f"its machines stay between runs, {price}, and stop {idle}")
    if before is not None:
        details.append(f"before: {_job_words(before)}")
    starts = f"; {count_noun(job.starts, 'run')} would start" if job.starts else ""
    return f"job {job.job}: {_job_words(job)}{starts}", tuple(details)


def _job_words(job: JobCost) -> str:
    shape = f"{count_noun(job.nodes, 'node')} of {job.shape}"
    if job.hours is None:
        return f"{shape}; the time of a run is unlimited"
    gpus = "unknown GPU-hours" if job.gpu_hours is None else f"{job.gpu_hours:,.1f} GPU-hours" if job.gpu_hours else ""
    price = format_dollars(job.usd_per_run) if job.usd_per_run is not None else "price unknown"
    parts = [f"{job.node_hours:,.1f} node-hours", gpus, price, "retries included"]
    return f"{shape}; a run takes at most {', '.join(filter(None, parts))}"


def _price_source(source: str) -> tuple[str, ...]:
    return (f"price: {source}",) if source else ()
