# SPDX-License-Identifier: Apache-2.0
"""Security groups as rules of a firewall. A reference to a group stands for the addresses of its members."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError

from localcloud.aws.machines import GroupRule, Machine, SecurityGroupRules
from localcloud.hosts.aws.places import METADATA_ADDRESS, STORAGE_ADDRESS
from localcloud.hosts.rules import ICMP, TCP, UDP, Direction, FirewallRule, UnreadableRuleError

_PROTOCOLS: Mapping[str, int | None] = {"-1": None, "all": None, "tcp": TCP, "udp": UDP, "icmp": ICMP, "icmpv6": 58}
# Groups, and lists of addresses.
_NAMES = ("sg-", "pl-")
Members = Mapping[str, Sequence[str]]


def firewall_rules(groups: Iterable[SecurityGroupRules], members: Members) -> tuple[FirewallRule, ...]:
    """The rules of an interface's groups. `members` are the addresses in each group."""
    rules = list(_implied())
    for group in groups:
        for direction, side in _sides(group):
            rules += [_rule(group.id, direction, index, rule, members) for index, rule in enumerate(side)]
    return tuple(rules)


def members_of(machines: Iterable[Machine]) -> dict[str, list[str]]:
    """The addresses in each group. An instance is at the address of its first interface."""
    members: dict[str, list[str]] = {}
    for machine in (one for one in machines if one.interfaces):
        address = machine.interfaces[0].address
        for group in {name for each in machine.interfaces for name in each.groups}:
            members.setdefault(group, []).append(address)
    return members


def admits(rule: GroupRule, address: str, port: int, members: Members) -> bool:
    """Whether a rule is about this peer and this port of TCP."""
    read = _rule("", "ingress", 0, rule, members)
    if read.protocol not in (None, TCP) or (read.ports and not read.ports[0] <= port <= read.ports[1]):
        return False
    return any(IPv4Address(address) in block for block in read.peers)


def _implied() -> Iterator[FirewallRule]:
    """What no security group keeps from an instance: its metadata service."""
    peer = f"{METADATA_ADDRESS}/32"
    yield FirewallRule("", "egress", 0, TCP, peer, (IPv4Network(peer),), key="metadata", implied=True)


def _sides(group: SecurityGroupRules) -> tuple[tuple[Direction, Sequence[GroupRule]], ...]:
    return (("ingress", group.ingress), ("egress", group.egress))


def _rule(group: str, direction: Direction, index: int, rule: GroupRule, members: Members) -> FirewallRule:
    protocol = _protocol(rule.protocol)
    ports = icmp = None
    if protocol in (TCP, UDP) and rule.first_port is not None and rule.first_port >= 0:
        ports = (rule.first_port, rule.last_port if rule.last_port is not None else rule.first_port)
    if protocol == ICMP and rule.first_port is not None and rule.first_port >= 0:
        icmp = (rule.first_port, rule.last_port if rule.last_port is not None and rule.last_port >= 0 else None)
    text = repr((direction, protocol, rule.peer, ports, icmp))
    return FirewallRule(
        group, direction, index, protocol, rule.peer, _blocks(rule.peer, members), ports=ports, icmp=icmp,
        description=rule.description, named=rule.peer.startswith(_NAMES),
        key=hashlib.sha256(text.encode()).hexdigest()[:16],
    )  # fmt: skip


def _protocol(name: str) -> int | None:
    if name in _PROTOCOLS:
        return _PROTOCOLS[name]
    if not name.isdecimal():
        raise UnreadableRuleError(f"the protocol {name!a} of a security group")
    return int(name)


def _blocks(peer: str, members: Members) -> tuple[IPv4Network, ...]:
    if peer.startswith("sg-"):
        return tuple(IPv4Network(f"{address}/32") for address in members.get(peer, ()))
    if peer.startswith("pl-"):
        # The one list of AWS's own that instances here can reach: that of the store.
        return (IPv4Network(f"{STORAGE_ADDRESS}/32"),)
    if ":" in peer:  # instances here have no IPv6 address
        return ()
    try:
        return (IPv4Network(peer, strict=False),)
    except (AddressValueError, NetmaskValueError, ValueError):
        raise UnreadableRuleError(f"the peer {peer!a} of a security group") from None
