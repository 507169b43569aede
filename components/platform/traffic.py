# SPDX-License-Identifier: Apache-2.0
"""Firewall counts of nodes, with names for addresses: rules, connections and dropped packets (docs/contracts.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.values.protocols import TCP, parse_protocol, protocol_name
from components.values.security_rules import Ports, SecurityRule, address_block, port_range_text

# A rule's list, direction and position. They identify the rule as long as its list does not change.
RuleKey = tuple[str, str, int]
_LATE = "late packets of a connection that the node had made and ended"


@dataclass(frozen=True, slots=True)
class DroppedResult:
    """Dropped packets of one kind. `missing` says on which side a rule is missing."""

    pair: str
    packets: int
    missing: str


@dataclass(frozen=True, slots=True)
class RehearsedNode:
    """One rank of one training run, and the address of its machine."""

    job: str
    run: str
    rank: int
    role: str
    name: str
    address: str

    @property
    def title(self) -> str:
        return f"{self.job}/{self.run} {self.name}"

    @property
    def machine(self) -> str:
        """The title of the machine, if it carries several runs of a job."""
        return f"{self.job} {self.name}"


@dataclass(frozen=True, kw_only=True)
class RuleInForce(SecurityRule):
    """One security rule in force, with the sum of its counts on all nodes.

    A peer may be an id that stands for `addresses`. `called` is its name for people.
    """

    list: str
    index: int
    connections: int = 0
    packets: int = 0
    called: str = ""
    addresses: frozenset[str] | None = None

    @property
    def key(self) -> RuleKey:
        return self.list, self.direction, self.index

    @property
    def title(self) -> str:
        way = "from" if self.direction == "ingress" else "to"
        return f"{self.direction} {way} {self.called or self.peer}, {ports_text(self.ports, self.protocol)}"

    def let_through(self, flow: Flow, nodes: frozenset[str]) -> bool:
        """Whether the rule allows the connection at the end that counted it. `nodes`: the addresses of all nodes."""
        # The label of the region's services stands for every address that is not a node's.
        members = self.addresses
        return self.allows(flow, lambda peer: peer not in nodes if members is None else peer in members)


@dataclass(frozen=True, slots=True)
class Flow:
    """Connections (or dropped packets) of one kind, counted by the firewall of one end.

    It has the names of both ends, because later runs may get the same addresses.
    """

    direction: str
    source: str
    target: str
    port: int
    protocol: int | None
    count: int
    source_name: str = ""
    target_name: str = ""

    @property
    def peer(self) -> str:
        return self.source if self.direction == "ingress" else self.target


@dataclass(frozen=True, slots=True)
class Traffic:
    """All counts of a rehearsal. `reason` says why rules were not enforced; empty if they were."""

    enforced: bool
    reason: str
    nodes: tuple[RehearsedNode, ...]
    rules: tuple[RuleInForce, ...]
    flows: tuple[Flow, ...]
    dropped: tuple[Flow, ...]

    def pair(self, flow: Flow) -> str:
        return f"{flow.source_name} -> {flow.target_name} {protocol_name(flow.protocol)} {flow.port}"

    def failing(self, rules: Iterable[RuleInForce]) -> tuple[Flow, ...]:
        """The connections that these rules would not have let through."""
        own = frozenset(node.address for node in self.nodes)
        in_force = tuple(rules)
        return tuple(flow for flow in self.flows if not any(rule.let_through(flow, own) for rule in in_force))


def ports_text(ports: Ports, protocol: int | None = TCP) -> str:
    if protocol is None:
        return "every protocol"
    word = protocol_name(protocol)
    return f"every {word} port" if ports is None else f"{word} {port_range_text(ports, '')}"


def read_traffic(documents: Iterable[tuple[Mapping[str, Any], Iterable[RehearsedNode]]]) -> Traffic:
    """Reads the evidence of several job runs, each with its nodes."""
    seen = [(document, tuple(nodes)) for document, nodes in documents]
    behind_gateway = any(
        row["direction"] == "egress" and address_block(row["peer"]) is None
        for document, _ in seen
        for row in document["rules"]
    )
    rules: dict[RuleKey, RuleInForce] = {}
    flows: dict[tuple[Any, ...], Flow] = {}
    dropped: dict[tuple[Any, ...], Flow] = {}
    for document, nodes in seen:
        runs = {(node.job, node.run) for node in nodes}
        names = {one.address: one.title for _, all_ in seen for one in all_ if (one.job, one.run) in runs}
        called = _Names(names, "the services" if behind_gateway else "outside")
        for row in document["rules"]:
            _add_rule(rules, row)
        for row in document["flows"]:
            _add_flow(flows, row, int(row["connections"]), called)
        for row in document["dropped"]:
            _add_flow(dropped, row, int(row["packets"]), called)
    reasons = [str(document["reason"]) for document, _ in seen if not document["enforced"]]
    return Traffic(
        enforced=bool(seen) and not reasons,
        reason="; ".join(dict.fromkeys(reasons)) or ("" if seen else "no node ran"),
        nodes=tuple(node for _, nodes in seen for node in nodes),
        rules=tuple(rules[key] for key in sorted(rules)),
        flows=tuple(flows.values()),
        dropped=tuple(dropped.values()),
    )


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of one run's addresses in reports."""

    nodes: Mapping[str, str]
    others: str

    def __call__(self, address: str) -> str:
        return self.nodes.get(address) or f"{self.others} ({address})"


def _add_rule(rules: dict[RuleKey, RuleInForce], row: Mapping[str, Any]) -> None:
    ports = row["ports"]
    rule = RuleInForce(
        list=str(row["list"]), direction=row["direction"], index=int(row["index"]),
        protocol=parse_protocol(str(row["protocol"])), peer=str(row["peer"]),
        ports=(int(ports[0]), int(ports[1])) if ports else None, description=str(row.get("description") or ""),
        called=str(row.get("called") or ""), addresses=frozenset(row["addresses"]) if "addresses" in row else None,
    )  # fmt: skip
    counted = rules.get(rule.key, rule)
    rules[rule.key] = replace(
        counted,
        # The rule's peer may be a group that gets members while nodes start.
        addresses=None if rule.addresses is None else rule.addresses | (counted.addresses or frozenset()),
        connections=counted.connections + int(row["connections"]),
        packets=counted.packets + int(row["packets"]),
    )


def _add_flow(flows: dict[tuple[Any, ...], Flow], row: Mapping[str, Any], count: int, called: _Names) -> None:
    protocol = parse_protocol(str(row.get("protocol", TCP)))
    source, target = str(row["from"]), str(row["to"])
    flow = Flow(
        str(row["direction"]), source, target, int(row["port"]), protocol, count, called(source),
        called(target),
    )  # fmt: skip
    key = (flow.direction, flow.source_name, flow.target_name, flow.port, flow.protocol)
    flows[key] = replace(flow, count=flows[key].count + count) if key in flows else flow


def dropped_connections(traffic: Traffic) -> tuple[DroppedResult, ...]:
    """The dropped connections: each pair and port once, whichever end dropped the packets."""
    packets: dict[tuple[str, str], int] = {}
    for flow in traffic.dropped:
        key = traffic.pair(flow), _missing_rule(flow, traffic)
        packets[key] = packets.get(key, 0) + flow.count
    return tuple(DroppedResult(pair, count, missing) for (pair, missing), count in packets.items())


def needed_dropped_connections(traffic: Traffic) -> tuple[DroppedResult, ...]:
    """The dropped connections without late packets, which nobody needs any more."""
    return tuple(one for one in dropped_connections(traffic) if one.missing != _LATE)


def _missing_rule(flow: Flow, traffic: Traffic) -> str:
    answered = {(seen.source_name, seen.target_name) for seen in traffic.flows if seen.direction == "egress"}
    nodes = {node.title for node in traffic.nodes}
    back = (flow.target_name, flow.source_name) in answered
    if flow.direction == "ingress" and flow.source_name not in nodes and back:
        return _LATE
    owner = flow.target_name if flow.direction == "ingress" else flow.source_name
    return f"no {flow.direction} rule of {owner} lets it through"
