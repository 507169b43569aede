# SPDX-License-Identifier: Apache-2.0
"""Runs in the order of a metric, the best first. What a run left in `result.json` counts before what it reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.platform.progress import highest_is_best, metric_names, numbers_in, read_point
from components.platform.status import RunStatus

RESULT, PROGRESS = "result.json", "progress"
# What `result.json` of a start holds, by the id of the start's first node.
Results = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class MetricValue:
    """`source`: `result.json`, or `progress` for what the run reported last."""

    name: str
    value: float
    source: str


@dataclass(frozen=True, slots=True)
class RankedRun:
    """`metric` None: the run has no number of this name."""

    run: RunStatus
    metric: MetricValue | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """`by`: empty where no run has any metric. The runs without it come last, in the order in which they were given."""

    by: str
    highest: bool
    runs: tuple[RankedRun, ...]


def rank_runs(runs: Sequence[RunStatus], results: Results, by: str | None, highest: bool | None) -> Ranking:
    """`by` None: the most telling metric of these runs. `highest` None: as the metric's name says."""
    by = by or next(iter(metric_choices(runs, results)), "")
    highest = highest_is_best(by) if highest is None else highest
    found = [RankedRun(run, _metric(run, results, by)) for run in runs]
    placed = [one for one in found if one.metric is not None]
    placed.sort(key=lambda one: one.metric.value if one.metric else 0.0, reverse=highest)
    return Ranking(by, highest, (*placed, *(one for one in found if one.metric is None)))


def metric_choices(runs: Sequence[RunStatus], results: Results) -> list[str]:
    """The metrics that these runs have, the most telling first."""
    points = [read_point(0.0, line) for run in runs for _, line in _lines(run, results)]
    return metric_names([point for point in points if point is not None])


def start_id(run: RunStatus) -> str:
    """What tells this start of a run from others."""
    return run.nodes[0].run.id if run.nodes else ""


def _metric(run: RunStatus, results: Results, by: str) -> MetricValue | None:
    for source, line in _lines(run, results):
        value = numbers_in(line).get(by)
        if value is not None:
            return MetricValue(by, value, source)
    return None


def _lines(run: RunStatus, results: Results) -> list[tuple[str, Any]]:
    """What may hold the metric, the surest first: of the ranks the lowest that reports."""
    result = results.get(start_id(run))
    reports = [(node.launcher_status or {}).get("progress") for node in run.nodes]
    return [*([(RESULT, result)] if result else []), *((PROGRESS, line) for line in reports if line is not None)]
