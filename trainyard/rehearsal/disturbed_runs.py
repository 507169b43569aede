# SPDX-License-Identifier: Apache-2.0
"""Disturbs the runs of a rehearsal: what a fault does to them, what a user reads about it, and whether they go on.

A run that ends because of a fault is started again without it, as another attempt that `trainyard up` would start.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from components.platform.progress import ProgressPoint, metric_names
from components.platform.status import RunStatus
from localcloud import admin
from trainyard.rehearsal.faults import FAULTS, Disturbance, Draw
from trainyard.rehearsal.judgement import SUCCEEDED, Observations
from trainyard.rehearsal.model import FaultOutcome
from trainyard.rehearsal.repeatable_runs import RepeatableRun, replace_attempt

# What `trainyard runs` says about the cause of a run's end, in one line.
Explain = Callable[[RunStatus], str]
# Disturbed runs have attempts of their own, two each, between those of confirmed predictions and of idle runs.
_FIRST_ATTEMPT = 5000
_SHORTEST_SECONDS = 0.5
# A run that can no longer reach the object store would wait for it as long as it may take.
_LONGEST_MINUTES = 3.0


@dataclass(frozen=True)
class StartSeen:
    """How a start ended, what a user reads about it, and the progress of all ranks."""

    state: str
    said: str
    points: tuple[ProgressPoint, ...] = ()

    @property
    def first_step(self) -> float | None:
        return next((point.step for point in self.points if point.step is not None), None)

    @property
    def loss(self) -> str:
        """The last value of the most important metric, in words."""
        for name in metric_names(self.points):
            values = [value for point in self.points if (value := point.metrics.get(name)) is not None]
            return f"{name} {values[-1]:g}"
        return ""


def disturb_runs(
    again: Sequence[RepeatableRun], seen: Observations, many: int, seed: int, explain: Explain
) -> tuple[FaultOutcome, ...]:
    """Starts runs with `many` faults, one at a time: no kind twice before each was drawn."""
    chance, kinds, outcomes = random.Random(seed), list[Draw](), list[FaultOutcome]()
    for number in range(many if again else 0):
        kinds = kinds or chance.sample([*FAULTS.values()], len(FAULTS))
        run = _from_its_beginning(chance.choice(again), _FIRST_ATTEMPT + 2 * number)
        before = next(one for one in seen.runs if (one.job, one.run) == (run.job.name, run.run.name))
        took = [(rank.launcher_status or {}).get("ranSeconds") for rank in before.ranks]
        seconds = max((float(one) for one in took if isinstance(one, int | float)), default=_SHORTEST_SECONDS)
        if (disturbance := kinds.pop()(run, seen, chance, seconds)) is not None:
            outcomes.append(_disturb_run(disturbance, run, explain))
    return tuple(outcomes)


def _from_its_beginning(again: RepeatableRun, attempt: int) -> RepeatableRun:
    """The run with folders of its own, also for checkpoints. Its ports are tested before it trains: what that finds is
    of interest here, and is no evidence any more."""
    other = replace_attempt(again, attempt)
    nodes = tuple(
        replace(node, launch={**node.launch, "checkpoints": f"{node.launch['folder']}/checkpoints"})
        for node in other.run.nodes
    )
    job = replace(other.job, expects={**other.job.expects, "preflight": "on"})
    minutes = min(other.minutes, _LONGEST_MINUTES)
    return replace(other, job=job, run=replace(other.run, nodes=nodes), minutes=minutes)


def _disturb_run(disturbance: Disturbance, run: RepeatableRun, explain: Explain) -> FaultOutcome:
    run.tell(f"rehearse: disturbing {run.job.name}/{run.run.name}: {disturbance.words}")
    began = time.monotonic()
    first = _watch_disturbed(disturbance, explain)
    said = first.said
    if not disturbance.outage.struck():
        said = "; ".join(filter(None, ("nothing was refused because of it", said)))
    title, seconds = f"{run.job.name}/{run.run.name}", time.monotonic() - began
    outcome = FaultOutcome(title, disturbance.words, first.state, said, seconds, loss=first.loss)
    if first.state == SUCCEEDED:
        return outcome
    second = _watch_disturbed(Disturbance("", replace_attempt(run, run.run.attempt + 1)), explain)
    resumed = None
    if first.first_step is not None and second.first_step is not None:
        resumed = second.first_step > first.first_step
    return replace(
        outcome, seconds=time.monotonic() - began, again=second.state, resumed=resumed, from_step=second.first_step,
        loss=second.loss,
    )  # fmt: skip


def _watch_disturbed(disturbance: Disturbance, explain: Explain) -> StartSeen:
    run, outage = disturbance.run, disturbance.outage

    def follow(_: RunStatus | None) -> bool:
        outage.follow(time.monotonic() - began)
        return False

    try:
        outage.follow(0.0)
        started = run.start()
        began = time.monotonic()
        seen, why = run.watch_to_end(started, follow)
    finally:
        outage.end()
    if seen is None:
        return StartSeen("NOT STARTED", started.refused or why)
    place = run.who.runs.place_of(seen)
    details = next((node.run.details for node in seen.nodes if node.run.details), "")
    said = "" if seen.state == SUCCEEDED else "; ".join(filter(None, (why, explain(seen)))) or details
    ranks = admin.read_progress(run.cloud, place.bucket, place.prefix) if place else {}
    points = sorted((point for rank in ranks.values() for point in rank), key=lambda point: point.moment)
    return StartSeen(seen.state, said, tuple(points))
