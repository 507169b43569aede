# SPDX-License-Identifier: Apache-2.0
"""The worlds of an elastic run: when a world begins, with which nodes, and in what order."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from launcher.servers.horovod_elastic import World
from tests.support.waiting import eventually


@dataclass(frozen=True)
class Slot:
    hostname: str
    local_rank: int
    rank: int


def ranks(members: Sequence[str], processes: int) -> Sequence[Any]:
    return [
        Slot(host, local, number * processes + local)
        for number, host in enumerate(members)
        for local in range(processes)
    ]


class Trial:
    """A `World`, and the hosts of each world that has begun, in order."""

    def __init__(self, nodes: int = 3, processes: int = 1, least: int = 2, late: float = 1e9) -> None:
        self.begun: list[list[str]] = []
        self.said: list[str] = []
        self.world = World(nodes, processes, least, ranks, self._note, self.said.append, late)
        self._waiting: list[threading.Thread] = []

    def _note(self, told: Sequence[Slot]) -> None:
        self.begun.append(list(dict.fromkeys(slot.hostname for slot in told)))

    def come(self, *hosts: str, local: int = 0) -> None:
        for host in hosts:
            assert self.world.come(host, local)

    def ready(self, *hosts: str, local: int = 0) -> None:
        """Each host reports on a thread of its own that it is ready, and waits there."""
        for host in hosts:
            thread = threading.Thread(target=self.world.ready, args=(host, local), daemon=True)
            thread.start()
            self._waiting.append(thread)

    def answered(self) -> None:
        for thread in self._waiting:
            thread.join(60)
            assert not thread.is_alive()


def test_the_first_world_waits_for_all_and_ranks_follow_the_order_of_nodes() -> None:
    trial = Trial()
    trial.come("2.0", "0.0")
    assert trial.begun == []
    trial.come("1.0")
    assert trial.begun == [["0.0", "1.0", "2.0"]]


def test_a_late_node_joins_later_but_the_first_world_waits_for_the_main_node() -> None:
    trial = Trial(late=-1.0)
    trial.come("1.0", "2.0")
    assert trial.begun == []
    trial.come("0.0")
    assert trial.begun == [["0.0", "1.0", "2.0"]]
    alone = Trial(late=-1.0)
    alone.come("0.0")
    assert alone.begun == [], "one node is fewer than `least`"
    alone.come("2.0")
    assert alone.begun == [["0.0", "2.0"]]


def test_the_remaining_nodes_go_on_when_all_are_ready_and_new_nodes_get_the_last_ranks() -> None:
    trial = Trial()
    trial.come("0.0", "1.0", "2.0")
    trial.world.leave("1.0")
    trial.ready("2.0")
    assert len(trial.begun) == 1
    trial.come("1.1")
    assert not trial.world.tick(), "all meet again in any case"
    trial.ready("0.0")
    trial.answered()
    assert trial.begun[1:] == [["0.0", "2.0", "1.1"]]
    assert trial.world.slot("1.1", 0).rank == 2
    assert trial.world.slot("1.0", 0) is None


def test_a_new_node_is_announced_until_it_has_joined() -> None:
    trial = Trial()
    trial.come("0.0", "1.0", "2.0")
    assert not trial.world.tick()
    trial.world.leave("2.0")
    trial.ready("0.0", "1.0")
    trial.answered()
    trial.come("2.1")
    assert trial.world.tick()
    assert trial.world.tick()
    trial.ready("0.0", "1.0")
    trial.answered()
    assert not trial.world.tick()
    assert trial.begun[-1] == ["0.0", "1.0", "2.1"]


def test_too_few_nodes_wait_until_another_comes_back() -> None:
    trial = Trial(least=3)
    trial.come("0.0", "1.0", "2.0")
    trial.world.leave("2.0")
    trial.ready("0.0", "1.0")
    eventually(lambda: trial.said[1:], bool)
    assert trial.said[1] == "2 of at least 3 nodes are there: waiting for others to come back"
    assert len(trial.begun) == 1
    trial.come("2.1")
    trial.answered()
    assert trial.begun[-1] == ["0.0", "1.0", "2.1"]


def test_no_world_begins_without_the_main_node() -> None:
    trial = Trial(least=1)
    trial.come("0.0", "1.0", "2.0")
    trial.ready("1.0", "2.0")
    trial.world.leave("0.0")
    assert len(trial.begun) == 1


def test_a_node_joins_with_all_its_processes_and_leaves_with_the_first_that_ends() -> None:
    trial = Trial(nodes=2, processes=2, least=1)
    trial.come("0.0", "1.0")
    trial.come("0.0", local=1)
    assert trial.begun == []
    trial.come("1.0", local=1)
    assert trial.begun == [["0.0", "1.0"]]
    trial.world.leave("1.0")
    trial.ready("1.0", local=1)
    trial.ready("0.0")
    assert len(trial.begun) == 1
    trial.ready("0.0", local=1)
    trial.answered()
    assert trial.begun[1:] == [["0.0"]]
    assert trial.world.slot("1.0", 1) is None


def test_an_ended_process_cannot_join_again() -> None:
    trial = Trial(nodes=2)
    trial.come("1.0", "1.1")
    assert not trial.world.come("1.0", 0), "another has taken its place"
    trial.world.leave("1.1")
    assert not trial.world.come("1.1", 0)
    assert trial.world.assigned("1.1", 0, lambda: False) is None
    assert trial.world.assigned("1.2", 0, lambda: True) is None
