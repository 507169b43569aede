# SPDX-License-Identifier: Apache-2.0
"""Elastic torchrun on hosts of their own, behind the planned rules and no others: a node is lost for good."""

from __future__ import annotations

import re
from dataclasses import replace

import psutil

from tests.support.cloud_fixture import eventually
from tests.support.field import LONGEST_SECONDS, Field
from tests.support.framework_examples import EXAMPLES

LOST = "1"


def agent_of(field: Field, rank: str) -> psutil.Process | None:
    """The torchrun of a node, which has started its process."""
    for process in psutil.Process(field.world.clients.cloud.pid).children(recursive=True):
        try:
            if "torch_elastic.py" in " ".join(process.cmdline()) and process.environ().get("NODE_RANK") == rank:
                return process
        except psutil.Error:
            continue
    return None


def test_training_goes_on_in_a_smaller_world_when_a_node_is_lost(field: Field) -> None:
    example = EXAMPLES["torchrun"]
    smaller = replace(example, command="train.py --epochs 40 --batches 100", options={**example.options, "minNodes": 2})
    with field.run(smaller.job(3), smaller.folder, smaller.environment()) as run:
        eventually(lambda: run.lines(0), lambda lines: any("epoch 2 " in line for line in lines), LONGEST_SECONDS)
        agent = agent_of(field, LOST)
        assert agent is not None, run.printed()
        agent.kill()
        states = run.finished()
        assert states == ["SUCCEEDED", "FAILED", "SUCCEEDED"], run.printed()
        trained = re.findall(r"epoch (\d+) loss \S+ world (\d)", "\n".join(run.lines(0)))
        worlds = [int(world) for _, world in trained]
        assert worlds == sorted(worlds, reverse=True)
        assert set(worlds) == {3, 2}
        begun = [int(epoch) for epoch in re.findall(r"rank 0 of \d begins after epoch (\d+)", "\n".join(run.lines(0)))]
        assert begun[0] == 0
        assert begun[-1] >= 2, "it went on from its snapshot"
        assert trained[-1] == ("40", "2")
        assert run.left("result.json")["ranks"] == 2
        # What the lost node still hears of is answered by nobody; all that was asked of nodes that live is open.
        assert {(source, target) for source, target, _ in run.dropped() if LOST not in f"{source}{target}"} == set()
