# SPDX-License-Identifier: Apache-2.0
"""Ports of other nodes on loopback addresses: open, refused, answered by another run, in use, and unanswered."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from launcher.port_tests import PortOfPeer, PortTests, is_listened_on
from tests.support.nodes import block

# Tests run in several processes at once, and two of them may choose the same ports.
HERE, THERE = (f"127.{os.getpid() // 250 % 250}.{os.getpid() % 250}.{last}" for last in (11, 12))


def peer(port: int, address: str = THERE, rank: int = 1) -> PortOfPeer:
    return PortOfPeer("data", rank, port, address)


@contextmanager
def node(address: str, rank: int, *targets: PortOfPeer, run: str = "run") -> Iterator[PortTests]:
    made = PortTests(run, rank, address, targets)
    try:
        yield made
    finally:
        made.close()


def turns(until: Callable[[], bool], *nodes: PortTests, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not until() and time.monotonic() < deadline:
        for one in nodes:
            one.turn(0.01)
    return until()


def test_a_node_that_listens_answers_with_its_run_and_rank() -> None:
    port = block(1)[0]
    with node(HERE, 0, peer(port)) as asks, node(THERE, 1) as answers:
        assert answers.listen(port)
        assert turns(lambda: not asks.pending and asks.greeted, asks, answers)
        assert asks.strangers == {}


def test_a_node_that_does_not_listen_yet_refuses_and_so_is_reached() -> None:
    with node(HERE, 0, peer(block(1)[0])) as asks:
        assert turns(lambda: not asks.pending, asks)
        assert asks.greeted


@pytest.mark.parametrize(("run", "rank"), [("other", 1), ("run", 2)])
def test_another_run_or_rank_that_answers_is_a_stranger(run: str, rank: int) -> None:
    port = block(1)[0]
    with node(HERE, 0, peer(port)) as asks, node(THERE, rank, run=run) as answers:
        answers.listen(port)
        turns(lambda: not asks.pending and asks.greeted, asks, answers)
        assert asks.strangers == {peer(port): f"{run} {rank}"}


def test_a_program_that_greets_in_no_way_or_in_its_own_is_open() -> None:
    for greeting in (b"", b"SSH-2.0-x\r\n"):
        with closing(socket.create_server((THERE, 0))) as server, node(HERE, 0, peer(server.getsockname()[1])) as asks:
            turns(lambda asks=asks: not asks.pending, asks)  # type: ignore[misc]
            with server.accept()[0] as accepted:
                accepted.sendall(greeting)
                assert turns(lambda asks=asks: asks.greeted, asks)  # type: ignore[misc]
            assert asks.strangers == {}


def test_a_full_backlog_which_drops_what_comes_stays_unanswered() -> None:
    with closing(socket.socket()) as server:
        server.bind((THERE, 0))
        server.listen(0)
        place = server.getsockname()
        held = []
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(place)
            held.append(one)
        with node(HERE, 0, peer(place[1])) as asks:
            assert not turns(lambda: not asks.pending, asks, seconds=0.5)
        for one in held:
            one.close()


def test_a_port_in_use_is_known_from_one_that_a_connection_of_ours_has() -> None:
    with closing(socket.create_server((HERE, 0))) as server, node(HERE, 0) as asks:
        port = server.getsockname()[1]
        assert is_listened_on(port)
        assert not asks.listen(port)
        with socket.create_connection((HERE, port)) as outgoing:
            own = outgoing.getsockname()[1]
            assert not is_listened_on(own)
            assert asks.listen(own), "it is not tested, and nobody is accused"


def test_no_table_of_the_kernel_accuses_nobody(tmp_path: Path) -> None:
    assert not is_listened_on(1, tmp_path)


def test_a_framework_binds_at_once_what_was_tested() -> None:
    port = block(1)[0]
    with node(HERE, 0, peer(port)) as asks, node(THERE, 1) as answers:
        answers.listen(port)
        turns(lambda: not asks.pending and asks.greeted, asks, answers)
    with closing(socket.socket()) as plain:
        plain.bind((THERE, port))
        plain.listen()


def test_more_ports_than_sockets_at_a_time_are_all_tested() -> None:
    with closing(socket.create_server((THERE, 0), backlog=1024)) as server:
        port = server.getsockname()[1]
        targets = [PortOfPeer(f"label-{number}", 1, port, THERE) for number in range(300)]
        with node(HERE, 0, *targets) as asks:
            assert turns(lambda: not asks.pending, asks)
