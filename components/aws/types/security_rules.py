# SPDX-License-Identifier: Apache-2.0
"""Security rules as EC2's API and Pulumi's provider `aws` have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.values.protocols import ICMP, ICMPV6, WITH_PORTS
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

# The inputs with peers. A rule of the API has one, a rule in a group's own inputs may have many.
_PEERS: Mapping[str, PeerKind] = {
    "cidrIpv4": "addresses", "cidrBlocks": "addresses", "cidrIpv6": "addresses", "ipv6CidrBlocks": "addresses",
    "prefixListId": "prefix list", "prefixListIds": "prefix list",
    "referencedSecurityGroupId": "group", "securityGroups": "group", "sourceSecurityGroupId": "group",
}  # fmt: skip
# The API's number for every port, type or code.
_EVERY = -1


def read_security_rules(row: Mapping[str, Any], direction: Direction) -> Iterator[SecurityRule]:
    """A rule for each peer. The peer of a rule for the members of its own group is the id of the group, if known."""
    given = row.get("ipProtocol") if row.get("ipProtocol") is not None else row.get("protocol")
    protocol = read_protocol(given)
    description = row.get("description")
    first, last = (_read_port_end(row.get(end)) for end in ("fromPort", "toPort"))
    is_number = isinstance(protocol, int)
    peers = [(kind, peer) for key, kind in _PEERS.items() for peer in read_rule_list(row.get(key))]
    itself = row.get("self")
    if itself is not None and itself is not False:
        peers.append(("group", "" if row.get("securityGroupId") is None else row["securityGroupId"]))
    for kind, peer in peers:
        yield SecurityRule(
            direction=direction,
            peer=peer,
            peer_kind=kind,
            protocol=protocol,
            ports=read_ports(first, last) if is_number and protocol in WITH_PORTS else None,
            icmp=(first, last) if is_number and protocol in (ICMP, ICMPV6) and first is not None else None,
            description=description if isinstance(description, str) else "",
        )


def _read_port_end(value: Any) -> Any:
    number = read_port_number(value)
    return None if isinstance(number, int) and number == _EVERY else number


def rule_inputs(row: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a rule that the API describes."""
    values = {
        "securityGroupId": row["GroupId"],
        "ipProtocol": row["IpProtocol"],
        "cidrIpv4": row.get("CidrIpv4"),
        "cidrIpv6": row.get("CidrIpv6"),
        "prefixListId": row.get("PrefixListId"),
        "referencedSecurityGroupId": (row.get("ReferencedGroupInfo") or {}).get("GroupId"),
        "fromPort": row.get("FromPort"),
        "toPort": row.get("ToPort"),
    }
    return {key: value for key, value in values.items() if value not in (None, _EVERY)}


def read_rules_of_group(inputs: Mapping[str, Any]) -> Iterator[SecurityRule]:
    for direction in DIRECTIONS:
        for row in read_rule_list(inputs.get(direction)):
            if isinstance(row, Mapping):
                yield from read_security_rules(row, direction)
            else:
                yield unread_rule(direction, row)


def read_rule_with_type(inputs: Mapping[str, Any]) -> Iterator[SecurityRule]:
    """The rule of a resource whose input `type` is its direction. If nobody knows the direction, it counts as one that
    lets in."""
    direction: Any = inputs.get("type")
    if direction is None or isinstance(direction, str):
        yield from read_security_rules(inputs, "egress" if direction == "egress" else "ingress")
    else:
        yield unread_rule(direction, direction)
