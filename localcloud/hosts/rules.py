# SPDX-License-Identifier: Apache-2.0
"""A firewall's rules, as the hosts enforce them."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal

Direction = Literal["ingress", "egress"]
Range = tuple[int, int]
TCP, UDP, ICMP = 6, 17, 1


class UnreadableRuleError(Exception):
    """A rule that cannot be enforced because its content makes no sense to a firewall."""


@dataclass(frozen=True)
class FirewallRule:
    """One rule. `peers` are the address blocks of its source or destination. The firewall gets numbers and addresses
    only; the texts are for people."""

    list: str
    direction: Direction
    index: int
    protocol: int | None  # None: every protocol
    peer: str
    peers: tuple[IPv4Network, ...]
    source_ports: Range | None = None
    ports: Range | None = None
    icmp: tuple[int, int | None] | None = None
    stateless: bool = False
    description: str = ""
    key: str = ""  # equal for rules of equal content
    named: bool = False  # the peer is a name, which only the cloud knows the addresses of
    implied: bool = False  # the cloud's own: nobody wrote it, so evidence does not list it
