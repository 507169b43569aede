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
    """A rule that cannot be enforced because nobody can tell what it says."""


@dataclass(frozen=True)
class FirewallRule:
    """One rule. `peers` are the blocks that its source or destination stands for. What the firewall
    is told is made of numbers and addresses alone; texts are for people."""

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
    key: str = ""  # the same for as long as the rule says the same
