# SPDX-License-Identifier: Apache-2.0
"""How peers are found: by a file that gets more lines, by the environment, and by a board with old and new
heartbeats."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from launcher import peers
from launcher.board import Board, Event, end_name, here_name, parse_board_events, rfc3339_seconds
from launcher.errors import LaunchError, MissingError
from launcher.peers import PeerRequest
from launcher.printing import LinePrinter
from launcher.readiness import StoppedError, Wait
from launcher.stores import Stored
from tests.support.documents import launch


def request(source: dict[str, object], environment: dict[str, str], seconds: float = 30.0) -> PeerRequest:
    return PeerRequest(
        launch(peers=source), environment, 0, Wait(LinePrinter(), lambda: "peers", seconds, "do this"), None
    )


def test_the_metadata_file_is_read_until_it_names_everybody(tmp_path: Path) -> None:
    file = tmp_path / "nodes.json"
    rows = [{"Rank": rank, "IPAddress": f"10.0.0.{rank}"} for rank in range(3)]

    def write(content: str) -> None:
        draft = tmp_path / "draft"
        draft.write_text(content)
        draft.rename(file)

    steps = [json.dumps(rows[:1]), "[{", json.dumps([{"Rank": 1}]), json.dumps(rows)]
    timers = [threading.Timer(0.2 * (number + 1), write, [step]) for number, step in enumerate(steps)]
    for timer in timers:
        timer.start()
    try:
        found = peers.find_addresses(request({"from": "cluster-metadata"}, {"CLUSTER_NODES_METADATA_FILE": str(file)}))
    finally:
        for timer in timers:
            timer.join()
    assert found == {0: "10.0.0.0", 1: "10.0.0.1", 2: "10.0.0.2"}


def test_ranks_that_the_metadata_file_lacks_are_named(tmp_path: Path) -> None:
    file = tmp_path / "nodes.json"
    file.write_text(json.dumps([{"Rank": 0, "IPAddress": "10.0.0.1"}]))
    with pytest.raises(
        MissingError, match=r"after 0 s: waited for ranks 1 \(worker-0\), 2 \(worker-1\)\. Remedy: do this"
    ):
        peers.find_addresses(request({"from": "cluster-metadata"}, {"CLUSTER_NODES_METADATA_FILE": str(file)}, 0.3))


def test_openpai_names_every_task() -> None:
    told = {"PAI_HOST_IP_main_0": "10.1.0.1", "PAI_HOST_IP_worker_0": "10.1.0.2", "PAI_HOST_IP_worker_1": "10.1.0.3"}
    assert peers.find_addresses(request({"from": "openpai"}, told)) == {0: "10.1.0.1", 1: "10.1.0.2", 2: "10.1.0.3"}
    with pytest.raises(LaunchError, match="PAI_HOST_IP_worker_1 is not set"):
        peers.find_addresses(request({"from": "openpai"}, {**told, "PAI_HOST_IP_worker_1": ""}))


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"from": "list", "addresses": ["10.0.0.1"]}, "lists 1 addresses for 3 nodes"),
        ({"from": "stars"}, "peers come from `stars`, which this image does not know"),
        ({"from": "bucket"}, "names no `folder`"),
        ({"from": "cluster-metadata"}, "CLUSTER_NODES_METADATA_FILE is not set"),
    ],
)
def test_unusable_sources_are_refused(source: dict[str, object], why: str) -> None:
    with pytest.raises(LaunchError, match=why):
        peers.find_addresses(request(source, {}))


def test_a_wait_ends_when_the_node_is_asked_to() -> None:
    with pytest.raises(StoppedError):
        Wait(LinePrinter(), lambda: "x", 30.0, "", lambda: True).turn(5.0)


def test_names_of_objects_are_read_as_they_are_written() -> None:
    at = "2026-11-21T12:00:00.250Z"
    listed = [
        Stored(here_name(2, 7, "nonce", "10.0.0.7"), at, 2, "e"),
        Stored(end_name(2, 7, "nonce", "retry", 137), at, 2, "e"),
        Stored("peers/key/g2/0007/nonce/here/10.0.0.7", at, 2, "e"),
        Stored("peers/g2/0007/nonce/surprise/x", at, 2, "e"),
        Stored("peers/nothing", at, 2, "e"),
    ]
    moment = rfc3339_seconds(at)
    assert moment % 1 == 0.25
    assert parse_board_events(listed) == [
        Event(2, 7, "nonce", moment, address="10.0.0.7"),
        Event(2, 7, "nonce", moment, how="retry", code=137),
    ]


def here(rank: int, nonce: str, at: float, generation: int = 0) -> Event:
    return Event(generation, rank, nonce, at, address=f"10.0.0.{rank}")


def test_events_of_replaced_launchers_are_ignored() -> None:
    board = Board(
        (
            here(0, "new", 1000.0), here(1, "old", 500.0), Event(0, 1, "old", 510.0, how="failed", code=3),
            here(2, "before", 950.0), here(2, "now", 960.0), Event(0, 2, "before", 955.0, how="failed", code=3),
        ),
        since=1000.0,
    )  # fmt: skip
    assert sorted(board.arrived(0)) == [0, 2]
    assert board.arrived(0)[2].nonce == "now"
    assert board.endings() == []


def test_the_first_failure_of_a_generation_explains_the_others() -> None:
    board = Board(
        (
            here(0, "a", 1.0), here(1, "b", 1.0), here(2, "c", 1.0),
            Event(0, 0, "a", 9.2, how="failed", code=1), Event(0, 1, "b", 9.1, how="retry", code=137),
            Event(0, 2, "c", 9.3, how="failed", code=1),
        ),
        since=1.0,
    )  # fmt: skip
    culprit = board.culprit(0)
    assert culprit is not None
    assert (culprit.rank, culprit.how) == (1, "retry")
    assert board.finals(launch()) == []
    assert [final.rank for final in board.finals(launch(gang=False))] == [0, 2]


def test_an_elastic_run_goes_on_without_failed_and_lost_nodes() -> None:
    elastic = launch(framework="horovod", options={"elastic": True, "minNodes": 2})
    failed = Event(0, 1, "b", 9.0, how="failed", code=3)
    board = Board((here(0, "a", 1.0), here(1, "b", 1.0), here(2, "c", 1.0), failed), since=1.0)
    assert board.gone(elastic, [2]) == {1, 2}
    assert board.gone(launch(), [2]) == frozenset()
    assert [elastic.spares(1, 1), elastic.spares(1, 2), elastic.spares(0, 1)] == [True, False, False]
    assert not elastic.gang
    assert launch(framework="horovod").gang
