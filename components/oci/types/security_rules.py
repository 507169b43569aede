# SPDX-License-Identifier: Apache-2.0
"""Security rules as OCI's API and Pulumi's provider `oci` have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.values.protocols import ICMP, ICMPV6, TCP, UDP
from components.values.security_rules import (
    DIRECTIONS,
    Direction,
    PeerKind,
    SecurityRule,
    read_port_number,
    read_ports,
    read_protocol,
    read_rule_list,
    unread_rule,
)

PEER_ENDS: Mapping[Direction, str] = {"ingress": "source", "egress": "destination"}
PEER_TYPES: Mapping[PeerKind, str] = {
    "addresses": "CIDR_BLOCK",
    "services": "SERVICE_CIDR_BLOCK",
    "group": "NETWORK_SECURITY_GROUP",
}
_PEER_KINDS: Mapping[Any, Any] = {None: "addresses", **{text: kind for kind, text in PEER_TYPES.items()}}
_PORT_OPTIONS: Mapping[int | None, str] = {TCP: "tcpOptions", UDP: "udpOptions"}
# Terraform writes -1 for every code.
_EVERY_CODE = -1


def read_security_rule(row: Mapping[str, Any], direction: Direction) -> SecurityRule:
    """A rule of a list or of a group."""
    end, protocol = PEER_ENDS[direction], read_protocol(row.get("protocol"))
    peer: Any = row.get(end)
    kind: Any = row.get(f"{end}Type")
    ports = source_ports = icmp = None
    # An unknown protocol is no number.
    if isinstance(protocol, int):
        ports, source_ports = _read_port_options(row.get(_PORT_OPTIONS.get(protocol, "")))
        icmp = _read_icmp(row.get("icmpOptions")) if protocol in (ICMP, ICMPV6) else None
    return SecurityRule(
        direction=direction,
        peer=peer,
        peer_kind=_PEER_KINDS.get(kind or None, kind) if isinstance(kind, str | None) else kind,
        protocol=protocol,
        ports=ports,
        source_ports=source_ports,
        icmp=icmp,
        stateless=row.get("isStateless") is True or row.get("stateless") is True,
        description=str(row["description"]) if isinstance(row.get("description"), str) else "",
    )


def _read_port_options(options: Any) -> tuple[Any, Any]:
    """Destination ports and source ports. Rules of lists have the former directly, as Pulumi writes them."""
    if not isinstance(options, Mapping):
        return _read_range(options), None
    chosen = options.get("destinationPortRange")
    return _read_range(options if chosen is None else chosen), _read_range(options.get("sourcePortRange"))


def _read_range(value: Any) -> Any:
    return read_ports(value.get("min"), value.get("max")) if isinstance(value, Mapping) else read_ports(value, value)


def _read_icmp(options: Any) -> Any:
    if not isinstance(options, Mapping):
        return None if options is None else (options, None)
    code = read_port_number(options.get("code"))
    kind = read_port_number(options.get("type"))
    return None if kind is None else (kind, None if isinstance(code, int) and code == _EVERY_CODE else code)


def read_rules_of_list(inputs: Mapping[str, Any]) -> Iterator[SecurityRule]:
    for direction in DIRECTIONS:
        for row in read_rule_list(inputs.get(f"{direction}SecurityRules")):
            yield read_security_rule(row, direction) if isinstance(row, Mapping) else unread_rule(direction, row)


def read_rule_of_group(inputs: Mapping[str, Any]) -> Iterator[SecurityRule]:
    direction: Any = inputs.get("direction")
    if isinstance(direction, str):
        yield read_security_rule(inputs, "egress" if direction == "EGRESS" else "ingress")
    else:
        yield unread_rule(direction, direction)
