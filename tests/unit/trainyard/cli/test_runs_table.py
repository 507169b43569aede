# SPDX-License-Identifier: Apache-2.0
"""The list of runs has one line per run, for any number of ranks and any output of a script."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus
from trainyard.cli.runs_text import about_run, lines_text, ranking_text, runs_json
from trainyard.runs.ranking import rank_runs

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def node(rank: int, state: str = "IN_PROGRESS", said: Any = None, details: str = "") -> NodeStatus:
    began, ended = NOW - timedelta(seconds=75), NOW - timedelta(seconds=10 - rank)
    finished = None if state == "IN_PROGRESS" else ended.isoformat()
    run = NodeRun(f"worker-{rank}", f"id{rank}", state, details, began.isoformat(), finished)
    return NodeStatus(rank, run, "worker", launcher_status=said)


def run(name: str, *nodes: NodeStatus, stack: str = "dev") -> RunStatus:
    own = tuple(replace(one, run=replace(one.run, id=name + one.run.id)) for one in nodes)
    return RunStatus(stack, "resnet", name, 2, NOW, own)


def test_each_run_is_one_line_with_its_nodes_duration_attempt_and_progress() -> None:
    running = {"state": "running", "progress": {"step": 12, "loss": 0.51234567}}
    going = run("a", node(0, said=running), node(1, said={"state": "waiting", "reason": "for rank 3"}))
    done = run("longer", node(0, "SUCCEEDED", {"progress": {"step": 99}}), node(1, "SUCCEEDED"))
    assert lines_text([going, done], NOW).splitlines() == [
        "run            state        nodes                    for         attempt  progress",
        "resnet/a       IN_PROGRESS  2: 1 running, 1 waiting  1 min 15 s  2        step 12, loss 0.512346",
        "resnet/longer  SUCCEEDED    2                        1 min 6 s   2        step 99",
    ]


def test_the_stack_is_a_column_only_where_there_are_several() -> None:
    both = [run("a", node(0)), run("a", node(0), stack="prod")]
    assert [line.split()[:2] for line in lines_text(both, NOW).splitlines()] == [
        ["stack", "run"],
        ["dev", "resnet/a"],
        ["prod", "resnet/a"],
    ]


def test_a_failed_run_says_which_rank_failed_first_and_a_waiting_one_for_what() -> None:
    ended = {"state": "stopped", "reason": "rank 1 (worker-1) failed first", "culprit": 1}
    failed = run("a", node(0, "FAILED", ended), node(1, "FAILED", {"state": "failed", "reason": "ended with code 3"}))
    assert about_run(failed) == "rank 1 (worker-1) failed first: ended with code 3"
    assert about_run(run("b", node(0, details="waits for run first"))) == "waits for run first"
    assert about_run(run("c", node(0, "CANCELED"), node(1, "FAILED", details="no capacity"))) == "no capacity"


def test_a_line_is_no_wider_than_the_terminal_and_its_state_has_a_colour() -> None:
    hostile = {"state": "running", "progress": "\x1b[2J" + "x" * 500}
    shown = lines_text([run("a", node(0, said=hostile))], NOW, colour=True, width=60)
    head, line = shown.splitlines()
    assert "\x1b[2J" not in line
    assert "\x1b[1mIN_PROGRESS\x1b[0m" in line
    assert len(line.replace("\x1b[1m", "").replace("\x1b[0m", "")) == 60
    assert len(head) <= 60


def test_a_table_by_a_metric_has_the_best_run_first_and_names_those_without_it() -> None:
    runs = [
        run("a", node(0, said={"progress": {"loss": 0.5}})),
        run("b", node(0, "FAILED", {"state": "failed", "reason": "ended with code 3"})),
        run("c", node(0, "SUCCEEDED")),
    ]
    ranking = rank_runs(runs, {"cid0": {"loss": 0.25}}, "loss", None)
    assert ranking_text(ranking, NOW).splitlines() == [
        "by loss, lowest first (--highest turns it around)",
        "place  loss  of             run       state        for         attempt",
        "1      0.25  result.json    resnet/c  SUCCEEDED    1 min 5 s   2",
        "2      0.5   last progress  resnet/a  IN_PROGRESS  1 min 15 s  2",
        "no loss: resnet/b, FAILED: rank 0 (worker-0) failed first: ended with code 3",
    ]
    plain = json.loads(runs_json(runs, (), ranking))
    assert [(one["run"], one["metric"]) for one in plain] == [
        ("c", {"name": "loss", "value": 0.25, "source": "result.json"}),
        ("a", {"name": "loss", "value": 0.5, "source": "progress"}),
        ("b", None),
    ]
    assert "metric" not in json.loads(runs_json(runs))[0]
