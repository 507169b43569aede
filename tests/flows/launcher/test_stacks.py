# SPDX-License-Identifier: Apache-2.0
"""A gang's statuses say where each rank was: when one of them failed, when all of them hung, and when somebody asks."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from components.platform.stack_requests import new_request_token, stack_request_name
from components.platform.status import parse_status
from launcher import exits
from tests.support.nodes import BUCKET, Nodes, Place, gang, nodes
from tests.support.waiting import eventually

# Rank 1 waits for a lock that it holds, the others for rank 1, and rank 2 fails if it is told so.
TRAIN = """
import os, sys, threading, time
rank, what = int(os.environ["RANK"]), sys.argv[1]

def evaluate(lock):
    with lock:
        lock.acquire()

def all_reduce():
    while not os.path.exists("done"):
        time.sleep(0.2)

open(f"up-{rank}", "w").close()
while not all(os.path.exists(f"up-{other}") for other in range(int(os.environ["WORLD_SIZE"]))):
    time.sleep(0.05)
if what == "fail" and rank == 2:
    time.sleep(3)  # the others are old enough for a signal
    sys.exit(3)
if rank == 1 and what != "wait":
    evaluate(threading.Lock())
else:
    all_reduce()
"""
EVALUATE = {"function": "evaluate", "file": "train.py", "line": TRAIN[: TRAIN.index("lock.acquire")].count("\n") + 1}
WAITS = {"function": "all_reduce", "file": "train.py", "line": TRAIN[: TRAIN.index("time.sleep(0.2)")].count("\n") + 1}


def start(run: Nodes, what: str, **variables: str) -> Nodes:
    run.script(TRAIN)
    run.changes = {"command": ["train.py", what]}
    return run.start(**variables)


def rows(place: Place, run: Nodes, rank: int) -> list[dict[str, Any]]:
    """The rows of a status, as commands read them."""
    status = parse_status(place.content(f"{run.folder}/status/{rank}.json"))
    found: list[dict[str, Any]] = (status or {}).get("stacks") or []
    return found


def test_each_rank_of_a_hanging_gang_says_where_it_is(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(nodes=2), "deadlock") as run:
        assert start(run, "hang", TRAINYARD_STALL_SECONDS="4").codes() == [exits.STALLED] * 2
        for rank, where in enumerate((WAITS, EVALUATE)):
            row = rows(place, run, rank)[-1]
            assert (row["cause"], row["where"], row["waits"]) == ("stall", where, None)
            text = place.content(f"{run.folder}/{row['object']}").decode()
            first, head, process, *_ = text.splitlines()
            assert (first, json.loads(head)["at"]) == ("trainyard stacks 1", row["at"])
            assert "how handler: " in process
            assert f"{where['function']} ({tmp_path}/train.py:{where['line']})" in text
        assert "its code is in evaluate (train.py:" in run.launchers[1].text


def test_a_failure_finds_out_where_the_others_were(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(), "failure") as run:
        assert start(run, "fail").codes() == [3, 3, 3]
        for rank, where in enumerate((WAITS, EVALUATE)):
            (row,) = rows(place, run, rank)
            assert (row["cause"], row["where"]) == ("failure", where)
        assert rows(place, run, 2) == [], "it had no process any more"


def test_each_rank_answers_a_request_once_and_goes_on(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(nodes=2), "asked") as run:
        start(run, "wait")
        eventually(lambda: all((tmp_path / f"up-{rank}").exists() for rank in range(2)))
        token = new_request_token()
        name = f"{run.folder}/{stack_request_name(token)}"
        place.world.clients.storage.put_object(place.namespace, BUCKET, name, b"")
        for rank in range(2):
            (row,) = eventually(partial(rows, place, run, rank))
            assert (row["cause"], row["request"], row["object"]) == ("request", token, f"stacks/{rank}-1.txt")
        (tmp_path / "done").touch()
        assert run.codes() == [0, 0]
        assert [len(rows(place, run, rank)) for rank in range(2)] == [1, 1]


def test_a_run_without_trouble_has_no_stacks(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(nodes=2), "fine") as run:
        (tmp_path / "done").touch()
        assert start(run, "wait").codes() == [0, 0]
        assert not [name for name in place.objects(run.folder) if "/stacks/" in name]
        assert place.status(run, 0)["stacks"] is None
