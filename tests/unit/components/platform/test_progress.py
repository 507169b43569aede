# SPDX-License-Identifier: Apache-2.0
"""Progress lines of scripts as numbers. For real runs see tests/flows/test_run_seen.py."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from components.platform.progress import (
    MOST_METRICS,
    ProgressPoint,
    crowded_point,
    metric_names,
    read_point,
    thin_points,
    written_point,
)


@pytest.mark.parametrize(
    ("line", "step", "total", "metrics"),
    [
        ({"step": 3, "total_steps": 10, "loss": 0.5}, 3, 10, {"loss": 0.5}),
        ({"epoch": 2, "epochs": 4, "step": 7}, 7, None, {}),
        ({"epoch": 2, "epochs": 4, "accuracy": 1}, 2, 4, {"accuracy": 1}),
        ({"step": True, "loss": "NaN", "kind": "word"}, None, None, {"loss": None}),
        ({"step": 1, "total": 0, "huge": 10**400}, 1, None, {}),
        ({"step": 1, "loss": float("inf"), "deep": {"loss": 1}, "many": [1]}, 1, None, {}),
        (0.25, None, None, {"progress": 0.25}),
    ],
)
def test_a_line_is_a_step_and_metrics(line: Any, step: Any, total: Any, metrics: Any) -> None:
    assert read_point(5.0, line) == ProgressPoint(5.0, step, total, metrics)


@pytest.mark.parametrize("line", [None, "epoch 3", [1], {}, {"kind": "word"}, {"x": None}])
def test_a_line_without_numbers_is_none(line: Any) -> None:
    assert read_point(5.0, line) is None


def test_of_many_metrics_the_telling_ones_are_kept_with_short_names() -> None:
    line = {**{f"{'m' * 100_000}{number}": number for number in range(300)}, "accuracy": 1.0, "loss": 2.0}
    point = read_point(0.0, {"loss": 2.0, "accuracy": 1.0, **line})
    assert point is not None
    assert list(point.metrics)[:2] == ["loss", "accuracy"]
    assert len(point.metrics) <= MOST_METRICS
    assert len(point.written()) < 1000
    assert written_point(0.0, point.written()) == point


def test_a_metric_that_was_never_a_number_is_none() -> None:
    points = [ProgressPoint(0, 1, None, {"x": None, "b": 1.0}), ProgressPoint(1, 2, None, {"x": None, "loss": 1.0})]
    assert metric_names(points) == ["loss", "b"]


def test_points_thin_out_and_the_first_and_last_stay() -> None:
    points = list(range(1000))
    assert thin_points(points, 5) == [0, 250, 500, 749, 999]
    kept: list[float] = []
    for point in range(10_000):
        kept.append(float(point))
        gone = crowded_point(kept)
        if gone is not None:
            del kept[gone]
        assert len(kept) <= 240
    assert (kept[0], kept[-1]) == (0, 9999)
    assert max(later - earlier for earlier, later in pairwise(kept)) <= 4 * 10_000 / 240, "also where it began"
