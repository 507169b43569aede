# SPDX-License-Identifier: Apache-2.0
"""Sorts runs by a metric, the best first. A value in `result.json` takes precedence over reported progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.platform.progress import highest_is_best, metric_names, numbers_in, read_point
from components.platform.status import RunStatus

RESULT, PROGRESS = "result.json", "progress"
# The content of `result.json` for each start, by the id of the start's first node.
Results = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class MetricValue:
    """`source`: `result.json`, or `progress` for the last reported value."""

    name: str
    value: float
    source: str


@dataclass(frozen=True, slots=True)
class RankedRun:
    """`metric` None: the run does not have the metric."""

    run: RunStatus
    metric: MetricValue | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """`by`: empty if no run has any metric. Runs without the metric come last, in their original order."""

    by: str
    highest: bool
    runs: tuple[RankedRun, ...]


def rank_runs(runs: Sequence[RunStatus], results: Results, by: str | None, highest: bool | None) -> Ranking:
    """`by` None: the most important metric of these runs. `highest` None: the metric's name decides."""
    by = by or next(iter(metric_choices(runs, results)), "")
    highest = highest_is_best(by) if highest is None else highest
    ranked = []
    for run in runs:
        values = ((numbers_in(line).get(by), source) for source, line in _metric_documents(run, results))
        metrics = (MetricValue(by, value, source) for value, source in values if value is not None)
        ranked.append(RankedRun(run, next(metrics, None)))
    placed = [run for run in ranked if run.metric is not None]
    placed.sort(key=lambda run: run.metric.value if run.metric else 0.0, reverse=highest)
    return Ranking(by, highest, (*placed, *(run for run in ranked if run.metric is None)))


def metric_choices(runs: Sequence[RunStatus], results: Results) -> list[str]:
    """The metrics of these runs, the most important first."""
    points = [read_point(0.0, line) for run in runs for _, line in _metric_documents(run, results)]
    return metric_names([point for point in points if point is not None])


def start_id(run: RunStatus) -> str:
    """The id of this start of a run."""
    return run.nodes[0].run.id if run.nodes else ""


def _metric_documents(run: RunStatus, results: Results) -> list[tuple[str, Any]]:
    """The documents that may hold the metric, in order of precedence: `result.json`, then the reports by rank."""
    result = results.get(start_id(run))
    reports = [(node.launcher_status or {}).get("progress") for node in run.nodes]
    return [*([(RESULT, result)] if result else []), *((PROGRESS, line) for line in reports if line is not None)]
