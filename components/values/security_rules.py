# SPDX-License-Identifier: Apache-2.0
"""Security rules: which connections a network lets through, on any platform.

Each platform reads its own rules in components/<platform>/types/security_rules.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Literal, Protocol

from components.values.protocols import parse_protocol

Direction = Literal["ingress", "egress"]
DIRECTIONS: tuple[Direction, ...] = ("ingress", "egress")
PeerKind = Literal["addresses", "services", "prefix list", "group"]
Ports = tuple[int, int] | None
LAST_PORT = 65535


class Connection(Protocol):
    """A connection, as the firewall of one of its ends sees it. `peer`: the address of the other end."""

    @property
    def direction(self) -> str: ...
    @property
    def protocol(self) -> int | None: ...
    @property
    def port(self) -> int: ...
    @property
    def peer(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class SecurityRule:
    """What one rule lets through. No protocol: every protocol. No ports: every port.

    `peer`: an address block, or the id or label of a group, a prefix list or the platform's services. `icmp`: type and
    code. A value that is not known yet, or that cannot be read, stays as it was given: who judges by it has to decide.
    """

    direction: Direction
    peer: str
    peer_kind: PeerKind = "addresses"
    protocol: int | None = None
    ports: Ports = None
    source_ports: Ports = None
    icmp: tuple[int, int | None] | None = None
    stateless: bool = False
    description: str = ""

    def allows(self, connection: Connection, has_address: Callable[[str], bool]) -> bool:
        """`has_address`: whether a peer that is not an address block has an address."""
        block = address_block(self.peer)
        return (
            self.direction == connection.direction
            and self.protocol in (None, connection.protocol)
            and (self.ports is None or self.ports[0] <= connection.port <= self.ports[1])
            and (has_address(connection.peer) if block is None else _address(connection.peer) in block)
        )


_address = lru_cache(maxsize=4096)(ip_address)


@lru_cache(maxsize=4096)
def address_block(peer: str) -> IPv4Network | IPv6Network | None:
    """None for a peer that is not an address block."""
    try:
        return ip_network(peer, strict=False)
    except ValueError:
        return None


def port_range_text(ports: Ports, every: str) -> str:
    if ports is None:
        return every
    return str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"


def read_protocol(value: Any) -> Any:
    if not isinstance(value, str | int):
        return value
    try:
        return parse_protocol(str(value))
    except ValueError:
        return value


def read_port_number(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        return value
    try:
        return int(value)
    except ValueError:
        return value


def read_ports(first: Any, last: Any) -> Any:
    """A range of ports. A missing end is open."""
    if first is None and last is None:
        return None
    return 0 if first is None else read_port_number(first), LAST_PORT if last is None else read_port_number(last)


def read_rule_list(value: Any) -> list[Any]:
    """The rows of a list. What is not known yet is one row."""
    if value is None or (isinstance(value, str) and not value):
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def unread_rule(direction: Direction, value: Any) -> SecurityRule:
    """A rule of which nothing can be read."""
    return SecurityRule(direction=direction, protocol=value, peer=value)
