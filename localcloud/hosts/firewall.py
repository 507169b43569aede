# SPDX-License-Identifier: Apache-2.0
"""Security rules as an nftables ruleset for one node.

A newer ruleset replaces an older one at once. Connections stay open, and an unchanged rule keeps its counts.
Each rule has two counters: of connections, and of packets that it let through outside of any connection. Sets record
which peers connected, which were refused, and how much content each node exchanged. Handshakes and acknowledgements
have no content, so they do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from components.values.protocols import ICMPV6, TCP, protocol_name
from components.values.security_rules import Direction, SecurityRule

TABLE = "inet trainyard"
# The packet that begins an untracked connection. In other protocols every packet does.
_UNTRACKED: Mapping[int | None, str] = dict.fromkeys((TCP, None), "tcp flags syn / syn,ack")
_TCP_AND_UDP = "meta l4proto { tcp, udp }"
# Launchers mark connections that only test a port (launcher/port_tests.py). A rule is not used because of them.
_NO_TEST = "ip dscp != cs1"
# The size of a TCP packet's headers with time stamps, as Linux writes them. A longer packet carries content.
HEADERS = 52
_CARRIES = (f"tcp flags & (syn | rst) == 0 ip length > {HEADERS}", "meta nfproto ipv4 meta l4proto udp")
_SIDES: dict[Direction, str] = {"ingress": "saddr", "egress": "daddr"}
# The hooks where packets are filtered, and those where some are marked as untracked.
_HOOKS: dict[Direction, tuple[str, str]] = {"ingress": ("input", "prerouting"), "egress": ("output", "output")}
# Lines in one ruleset text. Linux's smallest default socket buffer holds twice as many.
_LINES = 200


class UnreadableRuleError(Exception):
    """A rule that cannot be translated into a firewall's rule."""


@dataclass(frozen=True, kw_only=True)
class FirewallRule(SecurityRule):
    """`peers`: the address blocks of its source or destination. The firewall gets only numbers and addresses; the texts
    are for people."""

    list: str
    index: int
    peers: tuple[IPv4Network, ...]
    key: str = ""  # equal for rules of equal content
    named: bool = False  # the peer is a name, whose addresses only the cloud knows
    implied: bool = False  # the cloud's own rule, which evidence does not list


def packets_counter(rule: FirewallRule) -> str:
    return f"packets_{rule.key}"


def connections_counter(rule: FirewallRule) -> str:
    return f"connections_{rule.key}"


def rulesets(rules: Sequence[FirewallRule], generation: int = 0) -> tuple[str, ...]:
    """The ruleset of one node. It allows its own loopback, open connections, and what a rule allows.

    Load the texts in this order. They are split because the kernel takes only short ones from accounts other than root.
    The last text puts everything in force at once and replaces the previous generation.
    """
    lines = [f"add table {TABLE}"]
    for rule in {rule.key: rule for rule in rules}.values():
        lines += [f"add counter {TABLE} {packets_counter(rule)}", f"add counter {TABLE} {connections_counter(rule)}"]
    for direction in _SIDES:
        lines += _prepared(direction, [rule for rule in rules if rule.direction == direction], generation)
    in_force = [line for direction in _SIDES for line in _in_force(direction, generation)]
    parts = [lines[first : first + _LINES] for first in range(0, len(lines), _LINES)]
    if len(parts[-1]) + len(in_force) > _LINES:
        parts.append([])
    parts[-1] += in_force
    return tuple("\n".join(part) + "\n" for part in parts)


def _prepared(direction: Direction, rules: Sequence[FirewallRule], generation: int) -> Iterator[str]:
    """Makes the chains of a generation, which are not in use yet."""
    for name in ("flows", "dropped"):
        kind = "type ipv4_addr . inet_proto . inet_service"
        yield f"add set {TABLE} {name}_{direction} {{ {kind}; flags dynamic; counter; size 65535; }}"
    yield f"add set {TABLE} carried_{direction} {{ type ipv4_addr; flags dynamic; counter; size 65535; }}"
    for chain in (f"{direction}_allowed", f"{direction}_rules{generation}", f"{direction}_untracked{generation}"):
        yield f"add chain {TABLE} {chain}"
    for rule in sorted(rules, key=lambda rule: not rule.stateless):  # if both kinds match, the stateless rule counts
        for match in _matches(rule):
            # The mark prevents that a repeated first packet counts as another connection.
            first = _UNTRACKED.get(rule.protocol, "") if rule.stateless else "ct mark 0"
            if rule.stateless:
                yield f"add rule {TABLE} {direction}_untracked{generation} {match} notrack"
            chain = f"add rule {TABLE} {direction}_rules{generation}"
            yield f"{chain} {match} {first} {_NO_TEST} counter name {connections_counter(rule)}"
            yield f"{chain} {match} counter name {packets_counter(rule)} goto {direction}_allowed"


def _in_force(direction: Direction, generation: int) -> Iterator[str]:
    hook, raw_hook = _HOOKS[direction]
    interface = "iif" if direction == "ingress" else "oif"
    yield f"add chain {TABLE} {direction} {{ type filter hook {hook} priority 0; policy drop; }}"
    yield f"add chain {TABLE} {direction}_untracked {{ type filter hook {raw_hook} priority -300; policy accept; }}"
    for chain in (direction, f"{direction}_untracked", f"{direction}_allowed"):
        yield f"flush chain {TABLE} {chain}"
    yield f"add rule {TABLE} {direction} {interface} lo accept"
    yield f"add rule {TABLE} {direction}_untracked {interface} lo accept"
    yield f"add rule {TABLE} {direction}_untracked jump {direction}_untracked{generation}"
    for something in _CARRIES:
        counted = f"update @carried_{direction} {{ ip {_SIDES[direction]} }}"
        yield f"add rule {TABLE} {direction} {something} ct state established,related,untracked {counted}"
    yield f"add rule {TABLE} {direction} ct state established,related accept"
    yield f"add rule {TABLE} {direction} jump {direction}_rules{generation}"
    key = f"ip {_SIDES[direction]} . meta l4proto . th dport"
    allowed = f"add rule {TABLE} {direction}_allowed"
    yield f"{allowed} ct mark 0 {_NO_TEST} {_TCP_AND_UDP} update @flows_{direction} {{ {key} }}"
    for first in ("tcp flags syn / syn,ack", "meta l4proto udp"):
        yield f"{allowed} ct state untracked {_NO_TEST} {first} update @flows_{direction} {{ {key} }}"
    yield f"{allowed} ct mark set 1"
    yield f"{allowed} accept"
    yield f"add rule {TABLE} {direction} {_TCP_AND_UDP} update @dropped_{direction} {{ {key} }}"
    if generation:
        for chain in (f"{direction}_rules{generation - 1}", f"{direction}_untracked{generation - 1}"):
            # The chain is missing if the previous generation was never in force. So add it before deleting it.
            yield from (f"{verb} chain {TABLE} {chain}" for verb in ("add", "flush", "delete"))


def _matches(rule: FirewallRule) -> Iterator[str]:
    """The nftables matches of a rule; none if no address here can match it."""
    blocks = {str(block) for block in rule.peers}
    if not blocks or rule.protocol == ICMPV6:
        return
    anyone = "0.0.0.0/0" in blocks
    peer = "meta nfproto ipv4" if anyone else f"ip {_SIDES[rule.direction]} {{ {', '.join(sorted(blocks))} }}"
    parts = [peer]
    if rule.protocol is not None:
        parts.append(f"meta l4proto {protocol_name(int(rule.protocol))}")
        for word, ports in (("sport", rule.source_ports), ("dport", rule.ports)):
            if ports:
                several = ports[0] != ports[1]
                parts.append(f"th {word} {ports[0]:d}-{ports[1]:d}" if several else f"th {word} {ports[0]:d}")
        if rule.icmp:
            parts.append(f"icmp type {rule.icmp[0]:d}")
            parts += [] if rule.icmp[1] is None else [f"icmp code {rule.icmp[1]:d}"]
    yield " ".join(parts)
