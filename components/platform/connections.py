# SPDX-License-Identifier: Apache-2.0
"""The connections of a run, from the counts of its nodes' firewalls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from components.platform.status import ConnectionsSeen, RunStatus
from components.platform.traffic import RehearsedNode, needed_dropped_connections, read_traffic

# The evidence of a run's machines, by the id of each node's run.
Documents = Mapping[str, Mapping[str, Any]]


def read_connections(run: RunStatus, documents: Documents) -> ConnectionsSeen | None:
    """None if no firewall counted the connections."""
    nodes = rehearsed_nodes(run, documents)
    members = {
        identifier: [node for node, of in zip(nodes, run.nodes, strict=True) if of.run.id == identifier]
        for identifier in documents
    }
    seen = read_traffic((document, members[identifier]) for identifier, document in documents.items())
    # All lines are about one run, whose name is the heading.
    prefix = f"{run.title} "
    dropped = tuple(
        replace(drop, pair=drop.pair.replace(prefix, ""), missing=drop.missing.replace(prefix, ""))
        for drop in needed_dropped_connections(seen)
    )
    own = {node.address for node in nodes}
    # Both ends count a connection between two nodes.
    flows = (flow for flow in seen.flows if flow.direction == "ingress" or flow.target not in own)
    used = sum(1 for rule in seen.rules if rule.connections or rule.packets)
    counted = sum(flow.count for flow in flows)
    return ConnectionsSeen(dropped, counted, used, len(seen.rules) - used) if seen.enforced else None


def rehearsed_nodes(seen: RunStatus, documents: Documents) -> tuple[RehearsedNode, ...]:
    """Every rank with its address. The document of a job run with one node has rank 0, one with node groups has the
    rank of each node."""
    ids = [node.run.id for node in seen.nodes]
    nodes = []
    for node in seen.nodes:
        shared = ids.count(node.run.id) > 1
        rows = documents.get(node.run.id, {}).get("nodes", ())
        address = next((row["address"] for row in rows if not shared or row["rank"] == node.rank), "")
        nodes.append(RehearsedNode(seen.job, seen.name, node.rank, node.role, node.run.name, str(address or "")))
    return tuple(nodes)
