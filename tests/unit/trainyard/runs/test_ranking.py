# SPDX-License-Identifier: Apache-2.0
"""Runs sorted by a metric: `result.json` takes precedence over progress, and no run is omitted silently."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from components.platform.progress import highest_is_best
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus, WantedRuns
from trainyard.runs.ranking import Ranking, metric_choices, rank_runs


def run(name: str, *reports: Any, state: str = "SUCCEEDED") -> RunStatus:
    nodes = tuple(
        NodeStatus(rank, NodeRun(f"n-{rank}", f"{name}{rank}", state), "worker", launcher_status={"progress": report})
        for rank, report in enumerate(reports or (None,))
    )
    return RunStatus("dev", "resnet", name, 1, datetime(2026, 5, 1, tzinfo=UTC), nodes)


def rows(ranking: Ranking) -> list[tuple[str, float | None]]:
    return [(one.run.name, one.metric.value if one.metric else None) for one in ranking.runs]


def test_the_best_run_comes_first_and_those_without_the_metric_last() -> None:
    runs = [run("a", {"loss": 0.5}), run("b"), run("c", {"loss": 0.1}), run("d", {"loss": "NaN"}), run("e", "text")]
    assert rows(rank_runs(runs, {}, "loss", None)) == [("c", 0.1), ("a", 0.5), ("b", None), ("d", None), ("e", None)]
    assert rows(rank_runs(runs, {}, "loss", True))[:2] == [("a", 0.5), ("c", 0.1)]


def test_what_a_run_left_counts_before_what_it_reported_last() -> None:
    runs = [run("a", {"loss": 0.5}), run("b", {"loss": 0.4})]
    ranking = rank_runs(runs, {"a0": {"loss": 0.3, "note": "done"}, "b0": {"ranks": 2}}, "loss", None)
    assert [(one.run.name, one.metric.value, one.metric.source) for one in ranking.runs if one.metric] == [
        ("a", 0.3, "result.json"),
        ("b", 0.4, "progress"),
    ]


def test_the_lowest_rank_that_reports_it_speaks_for_the_run() -> None:
    assert rows(rank_runs([run("a", {"step": 3}, {"loss": 0.2}, {"loss": 0.9})], {}, "loss", None)) == [("a", 0.2)]


def test_without_a_name_the_most_important_metric_is_used() -> None:
    runs = [run("a", {"step": 9, "lr": 0.1, "accuracy": 0.8}), run("b", {"accuracy": 0.9, "own": 1})]
    ranking = rank_runs(runs, {}, None, None)
    assert (ranking.by, ranking.highest) == ("accuracy", True)
    assert rows(ranking) == [("b", 0.9), ("a", 0.8)]
    assert metric_choices(runs, {"b0": {"loss": 1.5}})[0] == "loss"
    assert rank_runs([run("a")], {}, None, None).by == ""


@pytest.mark.parametrize(
    ("metric", "highest"),
    [("val_accuracy", True), ("eval/F1", True), ("top1", True), ("loss", False), ("perplexity", False), ("own", False)],
)
def test_a_metrics_name_says_which_values_are_best(metric: str, highest: bool) -> None:
    assert highest_is_best(metric) is highest


def test_a_sweeps_name_stands_for_its_runs_and_for_no_others() -> None:
    wanted = WantedRuns("dev", "resnet", "sweep", frozenset({"sweep-lr-1", "sweep-lr-2"}))
    tags = {"stack": "dev", "job": "resnet"}
    included = [name for name in ("sweep-lr-1", "sweep-lr-10", "sweep") if wanted.includes({**tags, "run": name})]
    assert included == ["sweep-lr-1"]
    assert not wanted.includes({**tags, "stack": "other", "run": "sweep-lr-1"})
