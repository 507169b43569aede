# SPDX-License-Identifier: Apache-2.0
"""The connections of a run, from its firewalls' counts: allowed and dropped ones, and rules that were not used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from typing import Any

from components.platform.traffic import Flow
from components.values.protocols import TCP, parse_protocol, protocol_name
from components.values.security_rules import SecurityRule, address_block, port_range_text
from localcloud.console.platform import Evidence, PlaceNames, RunNode, TrainingRun

ELSEWHERE, ANYWHERE = "other addresses", "anywhere"
NO_ROLE = "node"
_NO_MACHINE = "No machine of the run is known, so nobody counted its connections."
# How many roles, outside places, rows and ports are shown. The rest is counted, or shares a common name.
_MOST_ROLES, _MOST_OUTSIDE, _MOST_ROWS, _MOST_PORTS = 8, 6, 60, 4
_OTHER_ROLES = "other roles"
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Rule(SecurityRule):
    """A rule on all nodes. `addresses`: those that its peer stands for, if the peer is not an address block."""

    addresses: tuple[str, ...] = ()

    @property
    def networks(self) -> tuple[IPv4Network, ...]:
        blocks = map(address_block, self.addresses or (self.peer,))
        return tuple(block for block in blocks if isinstance(block, IPv4Network))

    @property
    def text(self) -> str:
        name = protocol_name(self.protocol)
        return "every protocol" if self.protocol is None else f"{name} {port_range_text(self.ports, 'every port')}"


@dataclass
class _RunEvidence:
    """The evidence of all nodes of a run."""

    places: PlaceNames
    roles: dict[str, str] = field(default_factory=dict)
    drops: Counter[str] = field(default_factory=Counter)
    rules: dict[tuple[str, str, int], _Rule] = field(default_factory=dict)
    used: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    holders: dict[tuple[str, str, int], dict[str, None]] = field(default_factory=dict)
    flows: list[Evidence] = field(default_factory=list)
    dropped: list[Evidence] = field(default_factory=list)

    def name(self, address: str) -> str:
        return self.roles.get(address) or self.places.names.get(address) or address

    def rule_for(self, flow: Flow) -> _Rule | None:
        fitting = [key for key, rule in self.rules.items() if rule.allows(flow, rule.addresses.__contains__)]
        return self.rules[max(fitting, key=lambda key: self.used[key])] if fitting else None


def draw_connections(run: TrainingRun, documents: Mapping[str, Evidence], places: PlaceNames) -> Row:
    """The drawing of a run's network: boxes, rows of connections, and how many rules were used."""
    reasons = [str(one["reason"]) for one in documents.values() if not one["enforced"]]
    seen = _RunEvidence(places)
    addresses = dict(_node_addresses(run, documents))
    named_roles = list(dict.fromkeys(node.role for node in run.nodes))
    roles = {role: (role or NO_ROLE) if place < _MOST_ROLES else _OTHER_ROLES for place, role in enumerate(named_roles)}
    seen.roles = {address: roles[node.role] for address, node in addresses.items()}
    for document in documents.values():
        _collect_evidence(seen, document)
    rows = [*_dropped_connections(seen), *_used_connections(seen), *_unused_rules(seen)]
    # The roles, and the first few places outside the run, have their names. The other places share one.
    inside = frozenset(roles.values())
    ends = dict.fromkeys(name for row in rows for end in ("from", "to") for name in row[end])
    named = inside | frozenset([name for name in ends if name not in inside][:_MOST_OUTSIDE])
    shown = [
        {
            **row,
            **{
                end: list(dict.fromkeys(name if name in named else ELSEWHERE for name in row[end]))
                for end in ("from", "to")
            },
        }
        for row in rows[:_MOST_ROWS]
    ]
    used = sum(1 for key in seen.rules if seen.used[key])
    address_of = {node.rank: address for address, node in addresses.items()}

    def shown_node(node: RunNode) -> Row:
        address = address_of.get(node.rank, "")
        return {"rank": node.rank, "name": node.run.name, "address": address, "dropped": seen.drops[address]}

    return {
        "reason": "; ".join(dict.fromkeys(reasons))[:500],
        "note": places.note if documents else _NO_MACHINE,
        "roles": [
            {"name": role, "nodes": [shown_node(node) for node in run.nodes if roles[node.role] == role]}
            for role in dict.fromkeys(roles.values())
        ],
        "rows": shown,
        "left": len(rows) - len(shown),
        "rules": {"used": used, "unused": len(seen.rules) - used},
        "connections": sum(row["count"] for row in rows if row["kind"] == "used"),
        "dropped": sum(row["count"] for row in rows if row["kind"] == "dropped"),
    }


def _node_addresses(run: TrainingRun, documents: Mapping[str, Evidence]) -> Iterator[tuple[str, RunNode]]:
    """The node of each address. Evidence of a machine with one node has rank 0; that of a job run has each node's
    rank."""
    members = Counter(node.machine for node in run.nodes)
    for node in run.nodes:
        for row in documents.get(node.machine, {}).get("nodes", ()):
            if row["address"] and (members[node.machine] == 1 or row["rank"] == node.rank):
                yield str(row["address"]), node


def _collect_evidence(seen: _RunEvidence, document: Evidence) -> None:
    own = {row["rank"]: str(row["address"]) for row in document["nodes"]}
    for row in document["rules"]:
        key = (str(row["list"]), str(row["direction"]), int(row["index"]))
        ports = (int(row["ports"][0]), int(row["ports"][1])) if row["ports"] else None
        peer = str(row["peer"])
        seen.rules[key] = _Rule(
            direction=row["direction"],
            protocol=parse_protocol(str(row["protocol"])),
            peer=peer,
            ports=ports,
            description=str(row.get("description") or ""),
            addresses=tuple(row.get("addresses") or seen.places.addresses_of(peer)),
        )
        # In TCP, packets outside of connections are tests of ports, and what is sent again.
        connects = seen.rules[key].protocol == TCP
        seen.used[key] += int(row["connections"]) + (0 if connects else int(row["packets"]))
        seen.holders.setdefault(key, {})[seen.name(own.get(row["node"], ""))] = None
    seen.flows += document["flows"]
    # Of traffic that needs no rules, only that between nodes is shown.
    seen.flows += [one for one in document.get("free", ()) if {str(one["from"]), str(one["to"])} <= seen.roles.keys()]
    seen.dropped += document["dropped"]


def _dropped_connections(seen: _RunEvidence) -> Iterator[Row]:
    answered = {(flow["from"], flow["to"]) for flow in seen.flows if flow["direction"] == "egress"}
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for flow in seen.dropped:
        source, target = str(flow["from"]), str(flow["to"])
        # Late packets of a connection that the node itself had opened and closed are left out.
        if flow["direction"] == "ingress" and source not in seen.roles and (target, source) in answered:
            continue
        seen.drops[source if source in seen.roles else target] += int(flow["packets"])
        owner = seen.name(target if flow["direction"] == "ingress" else source)
        why = f"no {flow['direction']} rule of {owner} lets it through"
        counts[seen.name(source), seen.name(target), _describe_port(flow), why] += int(flow["packets"])
    for (source, target, what, why), count in counts.most_common():
        yield _connection_row("dropped", [source], [target], what, count, why)


def _used_connections(seen: _RunEvidence) -> Iterator[Row]:
    """The used connections. Those between nodes are counted by the receiver's firewall, others by the node's own."""
    counts: Counter[tuple[str, str, _Rule | None]] = Counter()
    ports: dict[tuple[str, str, _Rule | None], dict[str, None]] = {}
    for flow in seen.flows:
        source, target, inwards = str(flow["from"]), str(flow["to"]), flow["direction"] == "ingress"
        if not inwards and target in seen.roles:
            continue
        protocol = parse_protocol(str(flow["protocol"]))
        rule = seen.rule_for(Flow(flow["direction"], source, target, int(flow["port"]), protocol, count=0))
        key = (seen.name(source), seen.name(target), rule)
        counts[key] += int(flow["connections"])
        ports.setdefault(key, {})[_describe_port(flow)] = None
    for key, count in counts.most_common():
        source, target, rule = key
        why = rule.description if rule else ""
        names, left = list(ports[key])[:_MOST_PORTS], len(ports[key]) - _MOST_PORTS
        used = ", ".join(names) + (f" and {left} more" if left > 0 else "")
        yield _connection_row("used", [source], [target], used, count, why)


def _unused_rules(seen: _RunEvidence) -> Iterator[Row]:
    for key, rule in seen.rules.items():
        if seen.used[key]:
            continue
        peers = list(dict.fromkeys(_peer_names(seen, rule)))
        holders = list(seen.holders[key])
        inwards = rule.direction == "ingress"
        if inwards or not set(peers) <= set(seen.roles.values()):
            ends = (peers, holders) if inwards else (holders, peers)
            yield _connection_row("allowed", *ends, rule.text, 0, rule.description)


def _peer_names(seen: _RunEvidence, rule: _Rule) -> Iterator[str]:
    """The roles that a rule's peer covers, and a name for other addresses that it covers."""
    networks = rule.networks
    if any(one.prefixlen == 0 for one in networks):
        yield ANYWHERE
        return
    inside = [role for address, role in seen.roles.items() if any(_parse_address(address) in one for one in networks)]
    named = [seen.places.names[address] for address in rule.addresses if address in seen.places.names]
    yield from [*inside, *named] or [rule.peer]


def _connection_row(kind: str, source: Sequence[str], target: Sequence[str], what: str, count: int, why: str) -> Row:
    return {"kind": kind, "from": list(source), "to": list(target), "what": what, "count": count, "why": why}


@lru_cache(maxsize=4096)
def _parse_address(text: str) -> IPv4Address | IPv6Address:
    return ip_address(text)


def _describe_port(flow: Evidence) -> str:
    return f"{protocol_name(flow['protocol'])} {flow['port']}"
