# SPDX-License-Identifier: Apache-2.0
"""Gangs that hang are ended, with the reason and each rank's last line; one busy rank keeps all the others alive."""

from __future__ import annotations

import re
from pathlib import Path

from launcher import exits
from tests.support.nodes import Nodes, Place, gang, nodes, planned

LIMIT = "2"
REASON = r"stalled: no output, progress, processor or disk use on any rank for 2 s"
# The behaviour of each rank: `hang`, `end`, or compile for three times the limit. `wait` waits for the compiling rank,
# then works. `first` hangs only in its first life.
PLAN = """
import os, sys, time
rank, folder = int(os.environ["RANK"]), os.getcwd()
what = sys.argv[1].split(",")[rank]
life = len([name for name in os.listdir(folder) if name.startswith(f"life-{rank}-")])
open(f"{folder}/life-{rank}-{life}", "w").close()
print("rank", rank, "enters", what, life, flush=True)
def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
if what == "compile":
    work(6)
    open(f"{folder}/compiled", "w").close()
elif what == "wait":
    while not os.path.exists(f"{folder}/compiled"):
        time.sleep(0.5)
    work(2)
elif what == "hang" or (what == "first" and not life):
    time.sleep(300)
"""


def start(run: Nodes, what: str, limit: str = LIMIT, script: str = PLAN) -> Nodes:
    run.script(script)
    run.changes = {**run.changes, "command": ["train.py", what]}
    return run.start(TRAINYARD_STALL_SECONDS=limit)


def reasons(place: Place, run: Nodes, count: int) -> list[str]:
    return [place.status(run, rank)["reason"] for rank in range(count)]


def test_a_hanging_gang_is_ended_and_every_rank_prints_the_reason(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(), "hangs") as run:
        start(run, "hang,hang,hang")
        assert run.codes() == [exits.STALLED] * 3
        assert all(re.match(REASON, reason) for reason in reasons(place, run, 3))
        for rank, label in enumerate(("0 (main-0)", "1 (worker-0)", "2 (worker-1)")):
            assert f"rank {label} printed last: rank {rank} enters hang 0" in run.launchers[0].text
        assert "printed last" not in run.launchers[1].text + run.launchers[2].text


def test_a_finished_rank_does_not_count_as_active(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(retries=1, nodes=2), "one-left") as run:
        start(run, "end,hang")
        assert run.codes()[1] == exits.STALLED
        assert "rank 1 (worker-0) printed last: rank 1 enters hang 0" in run.launchers[1].text
        assert "this node cannot start again" in run.launchers[1].text


def test_one_active_rank_keeps_the_run_alive(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(nodes=2), "compiles") as run:
        start(run, "compile,wait")
        assert run.codes() == [0, 0]
        assert "idle" not in run.launchers[0].text
        assert "idle: no output, progress, processor or disk use on this node for 2 s" in run.launchers[1].text
        assert "active again: processor" in run.launchers[1].text
        assert place.status(run, 1)["reason"] == ""


def test_a_retry_policy_restarts_a_stalled_run(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(retries=1, nodes=2), "hangs-once") as run:
        start(run, "first,first")
        assert run.codes() == [0, 0]
        assert len(list(tmp_path.glob("life-*"))) == 4


def test_a_limit_of_zero_turns_it_off(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(nodes=2), "unwatched") as run:
        start(run, "hang,hang", limit="0", script=PLAN.replace("sleep(300)", "sleep(5)"))
        assert run.codes() == [0, 0]
        assert "idle" not in run.shown()


# In place of an end after 300 seconds.
UNTIL_DONE = "while not os.path.exists('done'):\n        time.sleep(0.2)"
IDLE = r"idle: no output, progress, processor or disk use on any node for 2 s .`stallMinutes`.; that does not end such"


def test_a_single_node_that_hangs_says_where_and_goes_on(place: Place, tmp_path: Path) -> None:
    spec = planned("pytorch", {"main": 1}, ports={"data": "all"})
    with nodes(place, tmp_path, spec, "single") as run:
        start(run, "hang", script=PLAN.replace("time.sleep(300)", UNTIL_DONE))
        run.launchers[0].says(IDLE)
        run.launchers[0].says(r"its code is in <module> \(train.py:\d+\); all stacks are in stacks/0-\d.txt")
        (tmp_path / "done").touch()
        assert run.codes() == [0]
        status = place.status(run, 0)
        assert (status["state"], status["reason"], status["stacks"][0]["cause"]) == ("succeeded", "", "stall")


def test_a_run_that_is_no_gang_is_reported_once_no_node_does_anything(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(nodes=2), "no-gang", changes={"gang": False}) as run:
        script = PLAN.replace("time.sleep(300)", UNTIL_DONE)
        start(run, "compile,hang", script=script.replace('open(f"{folder}/compiled", "w").close()', UNTIL_DONE))
        for started in run.launchers.values():
            started.says(IDLE)
        (tmp_path / "done").touch()
        assert run.codes() == [0, 0]
        assert "on this node" not in run.shown(), "one that waits for another is no news"
