# SPDX-License-Identifier: Apache-2.0
"""What a person who follows a run is told beside its output."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from components.platform.runs import NodeRun
from components.platform.status import ConnectionsSeen, NodeStatus, RunStatus
from components.platform.traffic import DroppedResult
from trainyard.cli.run_news import DroppedNews, empty_log_lines, end_lines
from trainyard.cli.runs import Follower
from trainyard.cli.runs_watch import Screen
from trainyard.runs.run_looks import ProgressHistory

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
MISSING = "no egress rule of worker-0 lets it through"
LINE = f"train/base: dropped: worker-0 -> main-0 tcp 29400, 3 packets: {MISSING}"


def dropping(*packets: int, state: str = "IN_PROGRESS", details: str = "", **more: Any) -> RunStatus:
    """A run of one node. Each pair of it has lost so many packets."""
    started = {"started_at": NOW.isoformat()} if state != "ACCEPTED" else {}
    node = NodeStatus(0, NodeRun("main-0", "r0", state, details, **started), "main", "c/g/l", **more)
    dropped = (DroppedResult(f"worker-{number} -> main-0 tcp 29400", count, MISSING) for number, count in
               enumerate(packets))  # fmt: skip
    return RunStatus("s", "train", "base", 1, NOW, (node,), ConnectionsSeen(tuple(dropped)))


def test_a_pair_is_news_once_and_again_when_it_has_grown_tenfold() -> None:
    news = DroppedNews()
    said = [list(news.new_lines(dropping(*packets))) for packets in ((3,), (4,), (29,), (30, 1), (299, 9))]
    assert [len(lines) for lines in said] == [1, 0, 0, 2, 0]
    assert said[0] == [LINE]


def test_of_many_pairs_only_the_first_are_lines() -> None:
    lines = list(DroppedNews().new_lines(dropping(*[1] * 40)))
    assert len(lines) == 11
    assert lines[-1] == "train/base: packets of further pairs are dropped; `trainyard runs` has all"


def test_a_follower_and_a_piped_watch_say_what_is_dropped_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    follower, news = Follower(draws=False), DroppedNews()
    follower.show(["[0 main-0] trains"], list, False, list(news.new_lines(dropping(3))))
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("[0 main-0] trains\n", f"{LINE}\n")
    screen = Screen(ProgressHistory(lambda run: {}), is_terminal=False)
    screen.show([dropping(3)], NOW)
    screen.show([dropping(4)], NOW)
    assert capsys.readouterr().out.count("dropped") == 1


def test_an_image_that_cannot_be_pulled_is_named_at_the_end() -> None:
    reason = "The image x/y:1 cannot be pulled: it does not exist in the registry, or the run may not read it"
    assert list(end_lines(dropping(state="FAILED", details=reason))) == [reason]
    status = {"state": "failed", "reason": "ended with code 3"}
    lines = list(end_lines(dropping(2, state="FAILED", details="exited with code 3", launcher_status=status)))
    assert lines[0] == "rank 0 (main-0) failed first: ended with code 3"
    assert lines[1].startswith("dropped: worker-0 -> main-0")
    assert list(end_lines(dropping(state="SUCCEEDED"))) == []


def test_a_log_without_a_line_is_remarked() -> None:
    (line,) = empty_log_lines([dropping(state="SUCCEEDED")])
    assert line.startswith("train/base: its log has no line so far.")
    assert "`trainyard access s` prints the statement with which they write log lines" in line
    assert list(empty_log_lines([dropping()])) == [], "it may print something yet"
    never = NodeStatus(0, NodeRun("main-0", "r0", "FAILED", "no image"), "main", "c/g/l")
    assert list(empty_log_lines([RunStatus("s", "train", "base", 1, NOW, (never,))])) == []
