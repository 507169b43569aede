# SPDX-License-Identifier: Apache-2.0
"""The counts of a run's firewalls: which rules were used, which nodes connected, and which packets were dropped."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from components.values.protocols import EVERY_PROTOCOL, protocol_name
from components.values.security_rules import DIRECTIONS
from localcloud.hosts import firewall
from localcloud.hosts.firewall import FirewallRule

FILE = "evidence.json"
Row = dict[str, Any]


@dataclass(frozen=True)
class NodeEvidence:
    """One node, the rules in force for it, and its firewall's counters as `nft -j list table` prints them."""

    rank: int
    group: str
    address: str
    vnic: str
    rules: Sequence[FirewallRule] = ()
    counters: str = ""


@dataclass(frozen=True)
class _SetElement:
    """One element of a set: its key, and what was counted for it."""

    key: tuple[Any, ...]
    packets: int
    bytes: int


@dataclass(frozen=True)
class _FirewallCounts:
    counters: dict[str, int] = field(default_factory=dict)
    sets: dict[str, list[_SetElement]] = field(default_factory=dict)


def build_evidence(run: str, reason: str, nodes: Sequence[NodeEvidence]) -> Row:
    """The evidence of one run. `reason` says why no rule was enforced, and is empty if rules were enforced."""
    seen = {node.rank: _parse_counters(node.counters) for node in nodes}
    return {
        "run": run,
        "enforced": not reason,
        "reason": reason,
        "nodes": [
            {
                "rank": each.rank,
                "group": each.group,
                "address": each.address,
                "vnic": each.vnic,
                "carried": _count_carried_bytes(each, seen[each.rank]),
                "processorSeconds": None,
            }
            for each in nodes
        ],
        "rules": [row for each in nodes for row in _rules_in_use(each, seen[each.rank])],
        "flows": [row for each in nodes for row in _list_flows(each, seen[each.rank], "flows", "connections")],
        # Traffic that only the cloud's own rules let through: no user's rule could stop it.
        "free": [row for each in nodes for row in _list_flows(each, seen[each.rank], "flows", "connections", True)],
        "dropped": [row for each in nodes for row in _list_flows(each, seen[each.rank], "dropped", "packets")],
    }


def add_processor_time(content: Mapping[str, Any], seconds: Mapping[int, float | None]) -> Row:
    """Adds the processor time of each node, which is known after the node has ended."""
    nodes = [{**node, "processorSeconds": seconds.get(node["rank"])} for node in content["nodes"]]
    return {**content, "nodes": nodes}


def write_evidence(folder: Path, content: Mapping[str, Any]) -> None:
    """Writes the file as a whole or not at all. If the folder was removed with its run, nothing is written."""
    draft = folder / f"{FILE}.new"
    try:
        draft.write_text(json.dumps(content))
        draft.replace(folder / FILE)
    except FileNotFoundError:
        return


def read_evidence(folder: Path) -> Row | None:
    try:
        content: Row = json.loads((folder / FILE).read_text())
        return content
    except FileNotFoundError:
        return None


def _rules_in_use(node: NodeEvidence, seen: _FirewallCounts) -> Iterator[Row]:
    for rule in node.rules:
        if rule.implied:
            continue
        yield {
            "list": rule.list,
            "direction": rule.direction,
            "index": rule.index,
            "description": rule.description,
            "protocol": EVERY_PROTOCOL if rule.protocol is None else str(rule.protocol),
            "peer": rule.peer,
            "ports": list(rule.ports) if rule.ports else None,
            "node": node.rank,
            "packets": seen.counters.get(firewall.packets_counter(rule), 0),
            "connections": seen.counters.get(firewall.connections_counter(rule), 0),
            **({"addresses": [str(block.network_address) for block in rule.peers]} if rule.named else {}),
        }


def _list_flows(
    node: NodeEvidence, seen: _FirewallCounts, kind: str, counted: str, free: bool = False
) -> Iterator[Row]:
    """The flows that rules decided, or (`free`) those that only the cloud's own rules let through."""
    implied = [rule for rule in node.rules if rule.implied]
    for direction in DIRECTIONS:
        own_blocks = [block for rule in implied if rule.direction == direction for block in rule.peers]
        for flow in sorted(seen.sets.get(f"{kind}_{direction}", ()), key=lambda flow: flow.key):
            peer, protocol, port = flow.key
            if free != any(IPv4Address(peer) in block for block in own_blocks):
                continue
            ends = (peer, node.address) if direction == "ingress" else (node.address, peer)
            yield {
                "direction": direction, "from": ends[0], "to": ends[1], "port": port,
                # nft prints names only if the system has a list of protocols. The smallest Debian has none.
                "protocol": protocol_name(protocol),
                counted: flow.packets,
            }  # fmt: skip


def _count_carried_bytes(node: NodeEvidence, seen: _FirewallCounts) -> dict[str, int]:
    """The bytes of content that were exchanged with each peer, in both directions together."""
    carried: Counter[str] = Counter()
    for direction in ("ingress", "egress"):
        for element in seen.sets.get(f"carried_{direction}", ()):
            (peer,) = element.key
            carried[peer] += max(0, element.bytes - firewall.HEADERS * element.packets)
    return dict(sorted(carried.items()))


def _parse_counters(counters: str) -> _FirewallCounts:
    seen = _FirewallCounts()
    for item in json.loads(counters)["nftables"] if counters else ():
        if "counter" in item:
            seen.counters[item["counter"]["name"]] = item["counter"]["packets"]
        if "set" in item:
            elements = seen.sets.setdefault(item["set"]["name"], [])
            for element in (one["elem"] for one in item["set"].get("elem", ())):
                value, counter = element["val"], element["counter"]
                key = tuple(value["concat"]) if isinstance(value, dict) else (value,)
                elements.append(_SetElement(key, counter["packets"], counter["bytes"]))
    return seen
