# SPDX-License-Identifier: Apache-2.0
"""The connections of a run that the port rules allowed and dropped. The local cloud's firewalls count each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from components.platform.calls import LocalCloud
from components.platform.status import ConnectionsSeen, RunStatus
from components.platform.traffic import RehearsedNode, read_traffic, wanted_drops
from localcloud import admin
from localcloud.control import CloudError


@dataclass
class Witness:
    """Asks the local cloud for the counts of a run. Those of an ended run are asked for once."""

    cloud: LocalCloud
    _over: dict[str, ConnectionsSeen | None] = field(default_factory=dict)

    def __call__(self, run: RunStatus) -> ConnectionsSeen | None:
        """None if no firewall counted the connections, or its counts are deleted."""
        first = run.nodes[0].run.id
        if first not in self._over:
            results = self._ask(run)
            if not run.over:
                return results
            self._over[first] = results
        return self._over[first]

    def _ask(self, run: RunStatus) -> ConnectionsSeen | None:
        try:
            documents = {
                identifier: admin.read_evidence(self.cloud, identifier)
                for identifier in {node.run.id for node in run.nodes}
            }
        except CloudError:
            return None
        nodes = nodes_of(run, documents)
        members = {
            identifier: [node for node, of in zip(nodes, run.nodes, strict=True) if of.run.id == identifier]
            for identifier in documents
        }
        seen = read_traffic((document, members[identifier]) for identifier, document in documents.items())
        # All lines are about one run, whose name is the heading.
        prefix = f"{run.title} "
        dropped = tuple(
            replace(one, pair=one.pair.replace(prefix, ""), missing=one.missing.replace(prefix, ""))
            for one in wanted_drops(seen)
        )
        own = {node.address for node in nodes}
        # Both ends count a connection between two nodes.
        flows = (flow for flow in seen.flows if flow.direction == "ingress" or flow.target not in own)
        used = sum(1 for rule in seen.rules if rule.connections or rule.packets)
        counted = sum(flow.count for flow in flows)
        return ConnectionsSeen(dropped, counted, used, len(seen.rules) - used) if seen.enforced else None


def nodes_of(seen: RunStatus, documents: Mapping[str, Mapping[str, Any]]) -> tuple[RehearsedNode, ...]:
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
