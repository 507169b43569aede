# SPDX-License-Identifier: Apache-2.0
"""Finds connections that the frameworks of a plan need and no rule allows: the job would hang."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from components.plan.model import INTERNET, SERVICES, SUBNET
from components.platform.review import Network, Passage, Snapshot
from trainyard.review.ranges import Ranges, common, union
from trainyard.review.reach import beyond

_INTERNET = ("0.0.0.0/0",)
_ALL = (1, 65535)
_Direction = Literal["ingress", "egress"]


@dataclass(frozen=True, slots=True, order=True)
class Hang:
    """A connection that the plan needs and no rule allows. `missing`: the direction and the end without a rule.

    `job` is empty if every node of the subnet makes the connection. `why`: its purpose.
    """

    job: str
    pair: str
    ports: tuple[int, int]
    missing: str
    why: str = ""


def hanging(side: Snapshot, network: Network) -> tuple[Hang, ...]:
    """Empty if the rules are unknown, because the network belongs to somebody else."""
    if network.unjudged or not network.nodes:
        return ()
    rules = side.plan.get("network", {}).get("rules", ())
    return tuple(sorted({hang for rule in rules for hang in _of(rule, network)}))


def _of(rule: Mapping[str, Any], network: Network) -> Iterator[Hang]:
    source, target = str(rule["source"]), str(rule["target"])
    job = next((name for end in (target, source) if (name := _job(end))), "")
    for direction, peers, end in _required_openings(target, network):
        protocol = str(rule.get("protocol") or "tcp")
        for ports in _blocked_ports(network, direction, protocol, peers, _ports(rule.get("ports"))):
            yield Hang(job, f"{source} -> {target}", ports, f"{direction} at {end or source}", str(rule.get("why", "")))


def _job(end: str) -> str:
    return end.rpartition("/")[0]


def _required_openings(target: str, network: Network) -> Iterator[tuple[_Direction, Iterable[str], str]]:
    """What must be open: the direction, the peers (one of them is enough), and the role (empty: the source)."""
    if target == SERVICES:
        yield from (("egress", row, "") for row in network.services)
    elif target == INTERNET:
        yield "egress", _INTERNET, ""
    else:
        yield "egress", network.addresses, ""
        yield "ingress", network.addresses, "every node" if target == SUBNET else target


def _blocked_ports(
    network: Network, direction: _Direction, protocol: str, peers: Iterable[str], ports: tuple[int, int]
) -> Ranges:
    """The ports that no passage opens to any of these peers."""
    left: Ranges = (ports,)
    for peer in peers:
        wanted = Passage(network.nodes, direction, protocol, peer, ports)
        left = common(left, union(one.ports for one in beyond((wanted,), network.passages)))
    return left


def _ports(text: Any) -> tuple[int, int]:
    """Parses the ports of a plan: `443`, `29500-29563`, or None for all."""
    if text is None:
        return _ALL
    first, _, last = str(text).partition("-")
    return int(first), int(last or first)
