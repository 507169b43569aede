# SPDX-License-Identifier: Apache-2.0
"""Finds connections that the frameworks of a plan need and no rule allows: the job would hang."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from components.plan.model import INTERNET, SERVICES, SUBNET
from components.platform.review import Network, Passage, Snapshot
from trainyard.review.ranges import Ranges, intersect_ranges, union_ranges
from trainyard.review.reach import Direction, find_passages_beyond

_INTERNET = ("0.0.0.0/0",)


@dataclass(frozen=True, slots=True, order=True)
class BlockedConnection:
    """A connection that the plan needs and no rule allows. `missing`: the direction and the end without a rule.

    `job` is empty if every node of the subnet makes the connection. `why`: its purpose.
    """

    job: str
    pair: str
    ports: tuple[int, int]
    missing: str
    why: str = ""
    protocol: str = "tcp"


def find_hanging_connections(side: Snapshot, network: Network) -> tuple[BlockedConnection, ...]:
    """Empty if the rules are unknown, because the network belongs to somebody else."""
    if network.unjudged or not network.nodes:
        return ()
    found: set[BlockedConnection] = set()
    for rule in side.plan.get("network", {}).get("rules", ()):
        source, target, why = str(rule["source"]), str(rule["target"]), str(rule.get("why", ""))
        job = next((job for role in (target, source) if (job := role.rpartition("/")[0])), "")
        protocol = str(rule.get("protocol") or "tcp")
        # `443`, `29500-29563`, or None for all.
        first, _, last = str(rule.get("ports") or "1-65535").partition("-")
        ports = int(first), int(last or first)
        for direction, peers, end in _required_openings(target, network):
            blocked: Ranges = (ports,)
            for peer in peers:
                needed = Passage(network.nodes, direction, protocol, peer, ports)
                closed = (passage.ports for passage in find_passages_beyond((needed,), network.passages))
                blocked = intersect_ranges(blocked, union_ranges(closed))
            where = f"{direction} at {end or source}"
            found.update(
                BlockedConnection(job, f"{source} -> {target}", ports, where, why, protocol) for ports in blocked
            )
    return tuple(sorted(found))


def _required_openings(target: str, network: Network) -> Iterator[tuple[Direction, Iterable[str], str]]:
    """What must be open: the direction, the peers (one of them is enough), and the role (empty: the source)."""
    if target == SERVICES:
        yield from (("egress", peers, "") for peers in network.services)
    elif target == INTERNET:
        yield "egress", _INTERNET, ""
    else:
        yield "egress", network.addresses, ""
        yield "ingress", network.addresses, "every node" if target == SUBNET else target
