# SPDX-License-Identifier: Apache-2.0
"""Elastic torchrun on separate hosts under the planned rules only: a node is lost, or joins again."""

from __future__ import annotations

import re
from dataclasses import replace

import psutil
import pytest

from schemas.model import Retry, Role
from tests.support.field import LONGEST_SECONDS, Field, Run
from tests.support.framework_examples import EXAMPLES, Example
from tests.support.waiting import eventually

LOST = 1


def example() -> Example:
    """The unchanged example, with enough epochs to lose a node in the middle."""
    one = EXAMPLES["torchrun"]
    return replace(one, command="train.py --epochs 40 --batches 100", options={**one.options, "minNodes": 2})


def lose(field: Field, run: Run) -> None:
    """Kills the torchrun of a node once training is under way."""
    eventually(lambda: run.lines(0), lambda lines: any("epoch 2 " in line for line in lines), LONGEST_SECONDS)
    agent = agent_of(field, LOST)
    assert agent is not None, run.printed()
    agent.kill()


def agent_of(field: Field, rank: int) -> psutil.Process | None:
    for process in psutil.Process(field.world.clients.cloud.pid).children(recursive=True):
        try:
            is_agent = "torch_elastic.py" in " ".join(process.cmdline())
            if is_agent and process.environ().get("NODE_RANK") == str(rank):
                return process
        except psutil.Error:
            continue
    return None


def trained(run: Run) -> list[tuple[int, int]]:
    """Each epoch with its world size, as rank 0 printed them."""
    printed = re.findall(r"epoch (\d+) loss \S+ world (\d)", "\n".join(run.lines(0)))
    return [(int(epoch), int(world)) for epoch, world in printed]


def beginnings(run: Run, rank: int) -> list[int]:
    """The epochs after which a node's process began."""
    return [int(epoch) for epoch in re.findall(r"begins after epoch (\d+)", "\n".join(run.lines(rank)))]


@pytest.mark.torture
def test_training_continues_in_a_smaller_world_after_a_node_is_lost(field: Field) -> None:
    one = example()
    with field.run(one.job(3), one.folder, one.environment()) as run:
        lose(field, run)
        assert run.finished() == ["SUCCEEDED", "FAILED", "SUCCEEDED"], run.printed()
        worlds = [world for _, world in trained(run)]
        assert worlds == sorted(worlds, reverse=True)
        assert set(worlds) == {3, 2}
        assert trained(run)[-1] == (40, 2)
        assert beginnings(run, 0)[0] == 0
        assert beginnings(run, 0)[-1] >= 2, "it went on from its snapshot"
        assert run.left("result.json")["ranks"] == 2
        # Connections to the lost node are dropped. Between live nodes, no connection is dropped.
        assert {pair for pair in run.dropped() if LOST not in pair[:2]} == set()


@pytest.mark.torture
def test_a_restarted_node_joins_again(field: Field) -> None:
    one = example()
    job = replace(one.job(3), roles={"main": Role(1), "worker": Role(2, retry=Retry(1))})
    with field.run(job, one.folder, one.environment()) as run:
        lose(field, run)
        run.succeeds()
        assert trained(run)[-1] == (40, 3)
        assert len(beginnings(run, LOST)) >= 2, "its second life trained too"
        assert run.dropped() == set(), "nothing was asked for that the plan does not open"
