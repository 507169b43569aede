# SPDX-License-Identifier: Apache-2.0
"""Opened and closed passages contain exactly the packets that one side allows and the other does not."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from dataclasses import replace
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.platform.review import EVERY_PORT, Network, Passage
from trainyard.review.reach import Reach, compare_networks, is_outside, passage_words

NODES = "the nodes"
BLOCKS = (
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.0.0.0/16",
    "10.0.0.0/17",
    "10.0.128.0/17",
    "10.0.1.0/24",
    "192.0.2.7/32",
    "::/0",
)
NAMES = ("the region's services", NODES)
BOUNDS = (0, 1, 21, 22, 23, 80, 255, 1023, 65535)
ADDRESSES = ("10.0.0.5", "10.0.1.9", "10.0.200.1", "10.9.9.9", "192.0.2.7", "203.0.113.1", "fd00::1", *NAMES)
PROTOCOLS = ("tcp", "udp", "icmp", "47")

ranges = st.tuples(st.sampled_from(BOUNDS), st.sampled_from(BOUNDS)).map(lambda pair: (min(pair), max(pair)))


def _made(direction: str, protocol: str, peer: str, ports: tuple[int, int], source: tuple[int, int]) -> Passage:
    if protocol == "all":
        ports = source = EVERY_PORT
    return Passage(NODES, direction, protocol, peer, ports, source)  # type: ignore[arg-type]


passages = st.builds(
    _made,
    st.sampled_from(["ingress", "egress"]),
    st.sampled_from([*PROTOCOLS[:3], "all", "all"]),
    st.sampled_from([*BLOCKS, *NAMES]),
    st.one_of(st.just(EVERY_PORT), ranges),
    st.one_of(st.just(EVERY_PORT), st.just(EVERY_PORT), ranges),
)
rules = st.lists(passages, max_size=6)


def lets(passage: Passage, packet: tuple[str, str, str, int, int]) -> bool:
    """Decides one packet at a time, without the code of the review."""
    direction, protocol, peer, port, source = packet
    named = passage.protocol.removeprefix("all but ").split(", ")
    others = passage.protocol.startswith("all but ")
    fits = protocol not in named if others else passage.protocol in ("all", protocol)
    return (
        passage.direction == direction
        and fits
        and passage.ports[0] <= port <= passage.ports[1]
        and passage.source_ports[0] <= source <= passage.source_ports[1]
        and _holds(passage.peer, peer)
        and not any(_holds(hole, peer) for hole in passage.but)
    )


def _holds(block: str, address: str) -> bool:
    if block in NAMES or address in NAMES:
        return block == address
    return ip_address(address) in ip_network(block)


def packets() -> Iterable[tuple[str, str, str, int, int]]:
    for direction in ("ingress", "egress"):
        for protocol in PROTOCOLS:
            for address in ADDRESSES:
                for port in (0, 1, 2, 21, 22, 50, 80, 300, 65535):
                    yield direction, protocol, address, port, random.Random(port).choice((0, 22, 500))
                    yield direction, protocol, address, port, 30000


PACKETS = tuple(packets())


def reach(before: Iterable[Passage], after: Iterable[Passage]) -> Reach:
    return compare_networks(Network(tuple(before)), Network(tuple(after)))


@given(rules, rules)
def test_a_packet_opens_exactly_if_only_the_new_rules_let_it_through(
    before: list[Passage], after: list[Passage]
) -> None:
    found = reach(before, after)
    for packet in PACKETS:
        then, now = (any(lets(rule, packet) for rule in side) for side in (before, after))
        assert any(lets(one, packet) for one in found.opened) == (now and not then), packet
        assert any(lets(one, packet) for one in found.closed) == (then and not now), packet


@given(rules, st.randoms(use_true_random=False))
def test_rules_that_are_split_merged_repeated_or_shuffled_change_nothing(
    before: list[Passage], chance: random.Random
) -> None:
    after = [part for rule in before for part in _split(rule, chance)]
    after += chance.sample(after, len(after) // 2)
    chance.shuffle(after)
    assert reach(before, after) == Reach()
    assert reach(after, before) == Reach()


def _split(rule: Passage, chance: random.Random) -> list[Passage]:
    first, last = rule.ports
    how = chance.randrange(4)
    if how == 0 and first < last:
        middle = chance.randrange(first, last)
        return [replace(rule, ports=(first, middle)), replace(rule, ports=(middle + 1, last))]
    if how == 1 and rule.peer not in NAMES and ip_network(rule.peer).num_addresses > 1:
        return [replace(rule, peer=str(half)) for half in ip_network(rule.peer).subnets()]
    if how == 2:
        return [rule, replace(rule, ports=(last, last))]
    return [rule]


def tcp(peer: str, *ports: int, direction: str = "ingress") -> Passage:
    return Passage(NODES, direction, "tcp", peer, (ports[0], ports[-1]) if ports else EVERY_PORT)  # type: ignore[arg-type]


def icmp(first: int, last: int) -> Passage:
    return Passage(NODES, "ingress", "icmp", "0.0.0.0/0", (first, last))


HERE = "10.0.0.0/24"
ALL = Passage(NODES, "ingress", "all", HERE)
SENTENCES = {
    "one more port": ([tcp(HERE, 22)], [tcp(HERE, 22, 23)], ["TCP 23 into the nodes, from 10.0.0.0/24"], []),
    "a wider block": (
        [tcp("10.0.0.0/24", 22)],
        [tcp("0.0.0.0/0", 22)],
        ["TCP 22 into the nodes, from anywhere (0.0.0.0/0) but 10.0.0.0/24"],
        [],
    ),
    "two halves are the whole": (
        [],
        [tcp("10.0.0.0/25", 22), tcp("10.0.0.128/25", 22)],
        ["TCP 22 into the nodes, from 10.0.0.0/24"],
        [],
    ),
    "every protocol where one was": (
        [tcp("10.0.0.0/24")],
        [ALL],
        ["every protocol but TCP into the nodes, from 10.0.0.0/24"],
        [],
    ),
    "one protocol instead of all": (
        [ALL],
        [tcp("10.0.0.0/24", 443)],
        [],
        [
            "every protocol but TCP into the nodes, from 10.0.0.0/24",
            "TCP 0-442 into the nodes, from 10.0.0.0/24",
            "TCP 444-65535 into the nodes, from 10.0.0.0/24",
        ],
    ),
    "a name": (
        [],
        [tcp("the region's services", 443, direction="egress")],
        ["TCP 443 out of the nodes, to the region's services"],
        [],
    ),
    "turned around": (
        [tcp("10.0.0.0/24", 22)],
        [tcp("10.0.0.0/24", 22, direction="egress")],
        ["TCP 22 out of the nodes, to 10.0.0.0/24"],
        ["TCP 22 into the nodes, from 10.0.0.0/24"],
    ),
    "kinds of ICMP": (
        [],
        [icmp(3 * 256 + 4, 3 * 256 + 4), icmp(8 * 256, 8 * 256 + 255)],
        [
            "ICMP type 3 code 4 into the nodes, from anywhere (0.0.0.0/0)",
            "ICMP type 8 into the nodes, from anywhere (0.0.0.0/0)",
        ],
        [],
    ),
    "source ports": (
        [Passage(NODES, "ingress", "udp", "::/0", (53, 53), (0, 1023))],
        [Passage(NODES, "ingress", "udp", "::/0", (53, 53))],
        ["UDP 53 from source ports 1024-65535 into the nodes, from anywhere (::/0)"],
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SENTENCES)
def test_what_changes_in_words(case: str) -> None:
    before, after, opened, closed = SENTENCES[case]
    found = reach(before, after)
    assert list(map(passage_words, found.opened)) == opened
    assert list(map(passage_words, found.closed)) == closed


def test_what_lies_outside() -> None:
    network = Network(inside=("10.0.0.0/17", "10.0.128.0/17", NODES))
    assert not is_outside(tcp("10.0.0.0/16", 22), network)
    assert not is_outside(tcp(NODES, 22), network)
    assert not is_outside(replace(tcp("10.0.0.0/15", 22), but=("10.1.0.0/16",)), network)
    assert is_outside(tcp("10.0.0.0/8", 22), network)
    assert is_outside(tcp("::/0", 22), network)
    assert is_outside(tcp("somebody's group", 22), network)


def test_ways_and_public_addresses_are_compared_too() -> None:
    found = compare_networks(Network(ways=("out",)), Network(ways=("out", "in"), public=(NODES,)))
    assert found.ways_opened == ("in", "the nodes: nodes can have public addresses")
    assert compare_networks(Network(ways=("in",)), Network()).ways_closed == ("in",)


def test_two_hundred_rules_of_each_side_take_no_time() -> None:
    chance = random.Random(1)

    def rule() -> Passage:
        block = f"10.{chance.randrange(4)}.{chance.randrange(256)}.0/{chance.choice((16, 20, 24))}"
        return tcp(block, chance.randrange(1, 60000), 60001)

    sides = [[rule() for _ in range(200)] for _ in range(2)]
    began = time.process_time()
    assert reach(*sides).opened
    assert time.process_time() - began < 5
