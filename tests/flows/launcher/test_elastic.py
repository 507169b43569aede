# SPDX-License-Identifier: Apache-2.0
"""Runs that may shrink go on without nodes that failed for good or were lost, with ranks counted anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.launcher.nodes import Nodes, Place, nodes, planned

# With everybody, trains on until it is ended, or fails if it is told to; with fewer, it finishes.
SHRINKS = """
import os, sys, time
print("world", os.environ["WORLD_SIZE"], "rank", os.environ["RANK"], "main", os.environ["MASTER_ADDR"], flush=True)
if os.environ["WORLD_SIZE"] != os.environ["FINISHES_WITH"]:
    if "FAILS" in os.environ:
        deadline = time.monotonic() + 120
        while len([name for name in os.listdir() if name.startswith("begun-")]) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        sys.exit(int(os.environ["FAILS"]))
    open(f"begun-{os.environ['RANK']}", "w").close()
    time.sleep(300)
"""


def start(run: Nodes, least: int, failing: int | None, **variables: str) -> None:
    run.script(SHRINKS)
    run.changes = {"command": ["train.py"], "options": {"elastic": True, "minNodes": least, "maxNodes": 0}}
    for rank in range(3):
        own = {"FAILS": "127"} if rank == failing else {}
        run.start(rank, TRAINYARD_LOST_SECONDS="15", FINISHES_WITH="2", **own, **variables)


def test_the_others_go_on_without_a_node_that_failed_for_good(place: Place, tmp_path: Path) -> None:
    spec = planned("pytorch", {"main": 1, "worker": 2}, ports={"data": "all"})
    with nodes(place, tmp_path, spec, "shrinks") as run:
        start(run, 2, failing=1)
        assert run.codes() == [0, 127, 0]
        assert "2 of 3 nodes are there" in run.launchers[0].text
        assert "[2] world 2 rank 1 main 127.0.0.1" in run.launchers[2].text


def test_the_others_go_on_without_a_node_that_is_lost(place: Place, tmp_path: Path) -> None:
    spec = planned("pytorch", {"main": 1, "worker": 2}, ports={"data": "all"})
    with nodes(place, tmp_path, spec, "shrinks-lost") as run:
        start(run, 2, failing=None)
        for started in run.launchers.values():
            started.says("world 3")
        run.launchers[1].process.kill()
        assert run.codes() == [0, -9, 0]
        assert "[2] world 2 rank 1 main 127.0.0.1" in run.launchers[2].text


@pytest.mark.parametrize(("name", "least", "failing"), [("too-few", 3, 2), ("main", 1, 0), ("all", 0, 1)])
def test_with_too_few_or_without_the_main_node_the_run_fails(
    place: Place, tmp_path: Path, name: str, least: int, failing: int
) -> None:
    spec = planned("pytorch", {"main": 1, "worker": 2}, ports={"data": "all"})
    with nodes(place, tmp_path, spec, f"shrinks-not-{name}") as run:
        start(run, least, failing)
        assert run.codes() == [127, 127, 127]
