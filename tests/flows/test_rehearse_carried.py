# SPDX-License-Identifier: Apache-2.0
"""A rehearsal reports the traffic of each planned node, and fails if a node that should have worked did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.rehearsing import Rehearsals

pytestmark = pytest.mark.engine
JOINED = 'runs_command = true\nawaits = ["head"]\nawaits_every = ["worker"]\n'


@pytest.mark.torture
def test_a_run_whose_command_ended_before_workers_joined_fails(tmp_path: Path) -> None:
    pool = Rehearsals.of_pool(tmp_path)
    report = pool.report("pool")
    (run,) = report["runs"]
    assert (report["verdict"], run["verdict"]) == ("failed", "failed")
    assert all(rank["finished"] for rank in run["ranks"]), "every node ended well: only what it carried tells"
    assert [rank["carried"] for rank in run["ranks"][1:]] == [False, False]
    for number in (0, 1):
        reason = next(one for one in run["because"] if one.startswith(f"rank {number + 1} (worker-{number}) carried"))
        assert "let the command wait until it has joined (`awaits_every` or `awaits_command`" in reason
    assert pool.left() == []


@pytest.mark.torture
def test_a_node_without_work_is_named_even_if_the_command_waits_for_it(tmp_path: Path) -> None:
    """The second run has the same nodes, which join, and gives them nothing to do."""
    pool = Rehearsals.of_pool(tmp_path)
    pool.change("pool.toml", 'runs_command = true\nawaits = ["head"]\n', JOINED)
    pool.change("Pulumi.pool.yaml", '"600"', '"1"')
    pool.change("Pulumi.pool.yaml", "        base: {}\n", "        base: {}\n        none: { args: [none] }\n")
    pool.change("code/train.py", "COUNT = 60\n", 'COUNT = 0 if "none" in __import__("sys").argv else 60\n')
    report = pool.report("pool")
    base, none = report["runs"]
    assert (base["run"], base["verdict"], base["because"]) == ("base", "passed", [])
    head, *workers = base["ranks"]
    assert [rank["carried"] for rank in base["ranks"]] == [True, True, True]
    assert head["load"]["peers"] == 2
    for worker in workers:
        assert worker["load"]["bytes"] > 2 * worker["idle"]["bytes"] > 0
        assert worker["load"]["processorSeconds"] > 0
    assert (none["run"], none["verdict"], report["verdict"]) == ("none", "failed", "failed")
    assert [rank["carried"] for rank in none["ranks"][1:]] == [False, False]
    assert any("when the command did nothing" in reason for reason in none["because"])
    assert pool.left() == []
