# SPDX-License-Identifier: Apache-2.0
"""When a node counts as idle, and the text about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.documents import document
from tests.unit.trainyard.rehearsal.recorded import FIRST, MAIN, NODES, SECOND, STORE, rank, run, seen
from trainyard.rehearsal.judgement import judge_rehearsal
from trainyard.rehearsal.model import RankSeen
from trainyard.rehearsal.node_load import NodeLoad, has_carried, largest_load, node_duty, read_load
from trainyard.rehearsal.report import RENDERERS, rehearsal_text

BUSY, IDLE = NodeLoad(52_000, 2, 2.6), NodeLoad(13_000, 1, 2.9)


@pytest.mark.parametrize(
    ("duty", "load", "idle", "verdict"),
    [
        ("works", NodeLoad(2, 1, 0.3), None, True),
        ("works", NodeLoad(0, 0, 9.0), None, False),
        ("works", NodeLoad(40, 2, 0.3), NodeLoad(40, 2, 0.3), True),
        ("serves", NodeLoad(0, 0, 2.0), None, False),
        ("serves", BUSY, IDLE, True),
        ("serves", NodeLoad(8_315, 1, 2.8), IDLE, False),
        ("serves", NodeLoad(13_900, 1, 3.0), IDLE, False),
        ("serves", NodeLoad(13_000, 1, 30.0), IDLE, True),
        ("serves", BUSY, None, None),
        ("serves", None, None, None),
        ("free", NodeLoad(0, 0, 0.0), None, None),
    ],
)
def test_what_a_node_carried(duty: Any, load: NodeLoad | None, idle: NodeLoad | None, verdict: bool | None) -> None:
    assert has_carried(duty, load, idle) is verdict


def test_only_content_between_nodes_of_the_run_counts() -> None:
    row = {"carried": {MAIN: 100, SECOND: 0, STORE: 9_999}, "processorSeconds": 1.5}
    assert read_load(row, {MAIN, SECOND}) == NodeLoad(100, 1, 1.5)
    assert read_load({}, {MAIN}) == NodeLoad(0, 0, None), "a cloud of an older release counts nothing"


def test_the_idle_load_is_the_largest_of_equal_nodes() -> None:
    assert largest_load([NodeLoad(7, 2, 3.0), NodeLoad(9, 1, None)]) == NodeLoad(9, 2, 3.0)
    assert largest_load([]) is None


def test_the_duty_of_a_node_follows_from_its_launch_document() -> None:
    told = document()
    assert node_duty(told, carries=True) == "works"
    assert node_duty({**told, "command": []}, carries=True) == "serves"
    assert node_duty(told, carries=False) == "free"
    assert node_duty({**told, "ports": {}}, carries=True) == "free", "nothing can be exchanged"
    alone = [{**told["roles"][0], "replicas": 1}]
    assert node_duty({**told, "roles": alone}, carries=True) == "free"


def serving(number: int, load: NodeLoad, idle: NodeLoad | None = IDLE) -> RankSeen:
    return replace(rank(number), duty="serves", load=load, idle=idle)


def test_a_successful_run_with_an_idle_node_has_failed() -> None:
    lazy = NodeLoad(8_315, 1, 2.8)
    report = judge_rehearsal(seen(run(replace(rank(0), duty="works", load=BUSY), serving(1, BUSY), serving(2, lazy))))
    assert (report.verdict, report.exit_code) == ("failed", 1)
    (reason,) = report.runs[0].because
    assert reason.startswith(
        "rank 2 (worker-1) carried nothing: it exchanged 8315 bytes with other nodes, and up to 13000"
    )
    assert "plan fewer nodes" in reason
    assert [one.carried for one in report.runs[0].ranks] == [True, True, False]
    for form in RENDERERS.values():
        assert "8315" in form(report)
    assert "NOTHING" in rehearsal_text(report)


def test_a_failed_run_is_not_explained_by_idle_nodes() -> None:
    report = judge_rehearsal(seen(run(rank(0), serving(1, NodeLoad(0, 0, 0.1)), rank(2, "FAILED"))))
    assert [reason for reason in report.runs[0].because if "carried" in reason] == []


def test_without_a_firewall_nothing_is_measured_and_nothing_is_said() -> None:
    report = judge_rehearsal(seen())
    assert {one.carried for one in report.runs[0].ranks} == {None}
    assert "NOTHING" not in rehearsal_text(report)
    assert {node.address for node in NODES} == {MAIN, FIRST, SECOND}
