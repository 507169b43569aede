# SPDX-License-Identifier: Apache-2.0
"""The points that `runs watch` collects. For a real run see tests/flows/test_run_seen.py."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from components.platform.progress import MOST_POINTS, ProgressPoint
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus
from trainyard.cli.runs_watch import BLOCKS, Screen
from trainyard.runs.run_looks import ProgressHistory

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def run(*progress: Any, name: str = "worker") -> RunStatus:
    nodes = tuple(
        NodeStatus(rank, NodeRun(f"{name}-{rank}", f"run{rank}", "IN_PROGRESS"), "worker", None, {"progress": one})
        for rank, one in enumerate(progress)
    )
    return RunStatus("s", "j", "r", 1, NOW, nodes)


def test_without_recorded_points_the_curve_begins_with_the_watch() -> None:
    history = ProgressHistory(lambda run: {})
    for moment in range(1000):
        series = history.observe(run({"step": moment // 2, "loss": 1.0}, None), float(moment))
    assert len(series[0]) == MOST_POINTS
    assert (series[0][0].step, series[0][-1].step) == (0, 499)
    assert list(series[1]) == []


def test_recorded_points_come_first_and_are_read_once() -> None:
    asked: list[str] = []

    def recall(seen: RunStatus) -> dict[int, list[ProgressPoint]]:
        asked.append(seen.title)
        return {0: [ProgressPoint(1.0, 1.0), ProgressPoint(2.0, 2.0)]}

    history = ProgressHistory(recall)
    for step in (2, 3):
        series = history.observe(run({"step": step}), 10.0)
    assert [point.step for point in series[0]] == [1, 2, 3]
    assert asked == ["j/r"]


def test_as_in_oci_the_screen_says_that_connections_are_not_known() -> None:
    screen = Screen(ProgressHistory(lambda run: {}), is_terminal=True, levels=BLOCKS)
    for loss in (3.0, 2.0, 1.0):
        lines = list(screen._run(run({"step": 1, "loss": loss}, "words"), NOW))
    assert lines[2].rstrip().endswith("█▅▁" + " " * 15 + "loss 1")
    assert lines[3].rstrip().endswith("words")
    assert lines[4] == "  connections: not known here"


def test_names_are_escaped_on_the_screen() -> None:
    screen = Screen(ProgressHistory(lambda run: {}), is_terminal=True, colour=True, levels=BLOCKS)
    hostile = {"\x1b[2J\n\u202e": 1.0, "loss": 2.0}
    for line in screen._run(run(hostile, name="\x1b[31m\n"), NOW):
        plain = line.replace("\x1b[1m", "").replace("\x1b[0m", "")
        assert plain.isprintable()
        assert len(plain) < 80
