# SPDX-License-Identifier: Apache-2.0
"""The connections of a plan against rules: the pair that would hang, at which end, on which ports."""

from __future__ import annotations

from typing import Any

import pytest

from components.platform.review import EVERY_PORT, Network, Passage, Snapshot
from trainyard.review.rendezvous import BlockedConnection, find_hanging_connections

SUBNET, NODES = "10.0.0.0/24", "the nodes"
MEET: dict[str, Any] = {
    "source": "resnet/worker",
    "target": "resnet/main",
    "ports": 29400,
    "why": "the store where ranks meet",
}
DATA: dict[str, Any] = {"source": "resnet/main", "target": "resnet/worker", "ports": "29500-29563", "why": "gradients"}
OUT: dict[str, Any] = {"source": "subnet", "target": "services", "ports": 443, "why": "the bucket"}


def side(*rules: dict[str, Any]) -> Snapshot:
    return Snapshot("vision-dev", "oci", {"network": {"rules": list(rules)}}, ())


def network(*passages: Passage, **more: Any) -> Network:
    known = {"nodes": NODES, "addresses": (SUBNET,), "services": (("services", "0.0.0.0/0"),), **more}
    return Network(passages, **known)


def within(direction: str, first: int, last: int, peer: str = SUBNET) -> Passage:
    return Passage(NODES, direction, "tcp", peer, (first, last))  # type: ignore[arg-type]


ENOUGH = (
    within("ingress", 29400, 29400), within("egress", 29400, 29400),
    within("ingress", 29500, 29531), within("ingress", 29532, 29563), within("egress", 29500, 29563),
    within("egress", 443, 443, "services"),
)  # fmt: skip


def test_nothing_hangs_where_every_connection_is_let_through() -> None:
    assert find_hanging_connections(side(MEET, DATA, OUT), network(*ENOUGH)) == ()
    everything = [Passage(NODES, way, "all", "0.0.0.0/0") for way in ("ingress", "egress")]
    assert find_hanging_connections(side(MEET, DATA, OUT, {**MEET, "ports": None}), network(*everything)) == ()


@pytest.mark.parametrize(
    ("lacking", "expected"),
    [
        (
            0,
            BlockedConnection(
                "resnet", "resnet/worker -> resnet/main", (29400, 29400), "ingress at resnet/main", MEET["why"]
            ),
        ),
        (
            1,
            BlockedConnection(
                "resnet", "resnet/worker -> resnet/main", (29400, 29400), "egress at resnet/worker", MEET["why"]
            ),
        ),
        (
            3,
            BlockedConnection(
                "resnet", "resnet/main -> resnet/worker", (29532, 29563), "ingress at resnet/worker", DATA["why"]
            ),
        ),
        (5, BlockedConnection("", "subnet -> services", (443, 443), "egress at subnet", OUT["why"])),
    ],
)
def test_a_lacking_rule_names_the_pair_that_hangs(lacking: int, expected: BlockedConnection) -> None:
    rules = [rule for number, rule in enumerate(ENOUGH) if number != lacking]
    assert find_hanging_connections(side(MEET, DATA, OUT), network(*rules)) == (expected,)


def test_a_rule_for_half_of_the_subnet_is_not_enough() -> None:
    half = within("ingress", 29400, 29400, "10.0.0.0/25")
    assert [hang.missing for hang in find_hanging_connections(side(MEET), network(half, ENOUGH[1]))] == [
        "ingress at resnet/main"
    ]


def test_any_of_the_peers_that_stand_for_the_nodes_is_enough() -> None:
    by_group = [Passage(NODES, way, "all", NODES) for way in ("ingress", "egress")]
    assert find_hanging_connections(side(MEET, DATA), network(*by_group, addresses=(NODES, SUBNET))) == ()


def test_a_network_that_is_not_known_hangs_nothing() -> None:
    assert find_hanging_connections(side(MEET), network(unjudged="somebody else's")) == ()
    assert find_hanging_connections(side(MEET), Network(ENOUGH[:1])) == ()
    assert EVERY_PORT == (0, 65535)
