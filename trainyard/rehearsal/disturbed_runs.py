# SPDX-License-Identifier: Apache-2.0
"""Disturbs the runs of a rehearsal: what a fault does to them, what a user reads about it, and whether they go on.

A run that ends because of a fault is started again without it, as another attempt that `trainyard up` would start.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from components.platform.client import Runs
from components.platform.progress import metric_names, read_point
from components.platform.status import RunStatus
from localcloud import admin
from trainyard.rehearsal.faults import FAULTS, Disturbance
from trainyard.rehearsal.judgement import SUCCEEDED, Observations
from trainyard.rehearsal.model import FaultOutcome
from trainyard.rehearsal.repeatable_runs import RepeatableRun, replace_attempt
from trainyard.rehearsal.run_evidence import Evidence

# What `trainyard runs why` says first about a run's end, given its framework.
Explain = Callable[[Runs, RunStatus, str], str]
# Disturbed runs have attempts of their own, two each, between those of confirmed predictions and of idle runs.
_FIRST_ATTEMPT = 5000
_SHORTEST_SECONDS = 0.5
# A run that can no longer reach the object store would wait for it as long as it may take: it gets these minutes, and a
# multiple of the undisturbed run's time.
_LONGEST_MINUTES, _TIMES = 3.0, 2


@dataclass(frozen=True)
class StartSeen:
    """How a start ended, what a user reads about it, whether a fault struck it, at which step it began, the loss at its
    end, and how long its command ran."""

    state: str
    said: str
    struck: bool = True
    first_step: float | None = None
    loss: str = ""
    ran_seconds: float = float("inf")


def _ran_seconds(statuses: Iterable[Mapping[str, Any] | None]) -> float:
    """How long the command ran, on the node where it ran longest."""
    took = ((status or {}).get("ranSeconds") for status in statuses)
    return max((float(one) for one in took if isinstance(one, int | float)), default=_SHORTEST_SECONDS)


def _last_loss(statuses: Iterable[Mapping[str, Any] | None]) -> str:
    """The last value of the most important metric, in words, of the first rank that reports one."""
    points = (read_point(0.0, (status or {}).get("progress")) for status in statuses)
    for point in filter(None, points):
        for name in metric_names([point]):
            return f"{name} {point.metrics[name]:g}"
    return ""


def disturb_runs(
    again: Sequence[RepeatableRun], seen: Observations, many: int, seed: int, explain: Explain
) -> tuple[tuple[FaultOutcome, ...], tuple[str, ...]]:
    """Starts runs with `many` faults, one at a time: no kind twice before each was drawn. Also returns the faults that
    a run could not have, with the reasons."""
    chance, outcomes, in_vain, took = random.Random(seed), list[FaultOutcome](), 0, dict[str, float]()
    reasons = {(run.job.name, kind): run.platform.why_without_fault(kind, run.job) for run in again for kind in FAULTS}
    left_out = {f"{job}: {kind}: {why}": None for (job, kind), why in reasons.items() if why}
    possible = [kind for kind in FAULTS if any(not why for (_, of), why in reasons.items() if of == kind)]
    kinds = list[str]()
    # Runs that can have no fault at all would be drawn forever.
    while possible and len(outcomes) < many and in_vain < len(possible):
        kinds = kinds or chance.sample(possible, len(possible))
        kind = kinds.pop()
        run = chance.choice([run for run in again if not reasons[run.job.name, kind]])
        before = next(one for one in seen.runs if (one.job, one.run) == (run.job.name, run.run.name))
        title = f"{run.job.name}/{run.run.name}"
        # A busy machine becomes idle: then the run takes less time, and must be disturbed earlier.
        seconds = took.setdefault(title, _ran_seconds(rank.launcher_status for rank in before.ranks))
        run = _from_its_beginning(run, _FIRST_ATTEMPT + 2 * len(outcomes), seconds)
        drawn = FAULTS[kind](run, seen, chance, seconds)
        if isinstance(drawn, str):
            left_out[f"{run.job.name}: {kind}: {drawn}"] = None
            in_vain += 1
            continue
        outcome, ran = _disturb_run(drawn, run, explain)
        took[title], in_vain = min(seconds, ran), 0
        undisturbed = _last_loss(rank.launcher_status for rank in before.ranks)
        outcomes.append(replace(outcome, undisturbed_loss=undisturbed))
    return tuple(outcomes), tuple(left_out)


def _from_its_beginning(again: RepeatableRun, attempt: int, seconds: float) -> RepeatableRun:
    """The run with folders of its own, also for checkpoints. Its ports are tested before it trains: what that finds is
    of interest here, and is no evidence any more."""
    other = replace_attempt(again, attempt)
    nodes = tuple(
        replace(node, launch={**node.launch, "checkpoints": f"{node.launch['folder']}/checkpoints"})
        for node in other.run.nodes
    )
    job = replace(other.job, expects={**other.job.expects, "preflight": "on"})
    minutes = min(other.minutes, _LONGEST_MINUTES + _TIMES * seconds / 60)
    return replace(other, job=job, run=replace(other.run, nodes=nodes), minutes=minutes)


def _disturb_run(disturbance: Disturbance, run: RepeatableRun, explain: Explain) -> tuple[FaultOutcome, float]:
    """Also returns how long the command ran if the first start succeeded, or else for ever."""
    run.tell(f"rehearse: disturbing {run.job.name}/{run.run.name}: {disturbance.words}")
    began = time.monotonic()
    first = _watch_disturbed(run, explain, disturbance)
    title, seconds = f"{run.job.name}/{run.run.name}", time.monotonic() - began
    outcome = FaultOutcome(title, disturbance.words, first.struck, first.state, first.said, seconds, loss=first.loss)
    if first.state == SUCCEEDED:
        return outcome, first.ran_seconds
    second = _watch_disturbed(replace_attempt(run, run.run.attempt + 1), explain)
    resumed = None
    if first.first_step is not None and second.first_step is not None:
        resumed = second.first_step > first.first_step
    outcome = replace(
        outcome, seconds=time.monotonic() - began, again=second.state, resumed=resumed, from_step=second.first_step,
        loss=second.loss or first.loss,
    )  # fmt: skip
    return outcome, float("inf")


def _watch_disturbed(run: RepeatableRun, explain: Explain, disturbance: Disturbance | None = None) -> StartSeen:
    evidence = Evidence(run.platform, run.cloud, run.who, run.outputs, run.tell)
    outage = disturbance.outage if disturbance is not None else None
    with outage.around() if outage is not None else nullcontext(lambda: None) as begin:
        started = (disturbance.run if disturbance is not None else run).start()
        begin()
        evidence.begin(started)
        seen, why = run.watch_to_end(started)
    if seen is None:
        return StartSeen("NOT STARTED", started.refused or why)
    struck = disturbance is None or disturbance.struck(evidence, started, seen)
    place = run.who.runs.place_of(seen)
    said = ""
    if seen.state != SUCCEEDED:
        said = "; ".join(filter(None, (why, explain(run.who.runs, seen, run.job.framework))))
    ranks = admin.read_progress(run.cloud, place.bucket, place.prefix) if place else {}
    points = sorted((point for rank in ranks.values() for point in rank), key=lambda point: point.moment)
    first_step = next((point.step for point in points if point.step is not None), None)
    statuses = [node.launcher_status for node in seen.nodes]
    return StartSeen(seen.state, said, struck, first_step, _last_loss(statuses), _ran_seconds(statuses))
