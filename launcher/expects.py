# SPDX-License-Identifier: Apache-2.0
"""What the run expects of its nodes and of the network between them, which launcher/preflight.py tests.

The platform puts it into the environment at every start, beside the launch document: components/plan/expects.py makes
it. Without it, nothing is tested.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VARIABLE = "TRAINYARD_EXPECTS"
# The local environment that stands in for an image.
STAND_IN_VARIABLE = "TRAINYARD_ENVIRONMENT"
VERSION = 1
ON, WARN, OFF = "on", "warn", "off"


@dataclass(frozen=True)
class PlannedConnection:
    """Nodes of the roles `sources` connect to those of `targets`, on the ports with this label of the document."""

    label: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True)
class PlannedNode:
    """What each node of some roles has. 0 and empty: the plan does not say. `kind` of devices: launcher/devices.py.
    `transport`: what carries data between nodes, if the platform can test it."""

    roles: tuple[str, ...] = ()
    devices: int = 0
    kind: str = ""
    device_gb: float = 0
    disk_gb: float = 0
    shm_mb: float = 0
    transport: str = ""


@dataclass(frozen=True)
class Expects:
    """`preflight`: whether a finding ends the run (on), or is only said (warn). `place`: where a rule between nodes is
    added, in words; empty if the platform has no rules. `peer`: whose connections such a rule lets through."""

    preflight: str = OFF
    connections: tuple[PlannedConnection, ...] = ()
    place: str = ""
    peer: str = ""
    nodes: tuple[PlannedNode, ...] = ()

    def node_of_role(self, role: str) -> PlannedNode:
        return next((node for node in self.nodes if role in node.roles), PlannedNode())


def read_expects(environment: Mapping[str, str]) -> Expects:
    """Reads the variable. What another release wrote in another form is not tested, but trains."""
    try:
        read: dict[str, Any] = json.loads(environment.get(VARIABLE) or "{}")
        if read.get("version") != VERSION or read["preflight"] not in (ON, WARN):
            return Expects()
        rules = read.get("rules") or {}
        return Expects(
            preflight=read["preflight"],
            connections=tuple(
                PlannedConnection(row["label"], tuple(row["from"]), tuple(row["to"]), str(row.get("why", "")))
                for row in read["connections"]
            ),
            # Where a local environment stands in for the image, the machine is not the planned one either.
            nodes=() if environment.get(STAND_IN_VARIABLE) else tuple(map(_read_node, read.get("nodes", ()))),
            place=str(rules.get("place", "")),
            peer=str(rules.get("peer", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Expects()


def _read_node(row: Mapping[str, Any]) -> PlannedNode:
    return PlannedNode(
        tuple(row["roles"]),
        int(row.get("devices", 0)),
        str(row.get("kind", "")),
        float(row.get("deviceGb", 0)),
        float(row.get("diskGb", 0)),
        float(row.get("shmMb", 0)),
        str(row.get("transport", "")),
    )
