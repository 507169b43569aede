# SPDX-License-Identifier: Apache-2.0
"""Peers by OCI's multi-node metadata: a JSON file on every node that fills as nodes come."""

from __future__ import annotations

import json
import os

from launcher.errors import LaunchError, MissingError
from launcher.peers import PeerRequest
from launcher.peers.meeting import named

VARIABLE = "CLUSTER_NODES_METADATA_FILE"
_INTERVAL = 0.1


def find(request: PeerRequest) -> dict[int, str]:
    """Reads the file whenever it has changed, until it names every rank."""
    path = request.environment.get(VARIABLE)
    if not path:
        raise LaunchError(f"{VARIABLE} is not set: OCI Data Science sets it to the file of addresses in node groups")
    missing = list(range(request.launch.nodes))
    request.wait.what = lambda: named(request.launch, missing)
    seen: tuple[int, int, int] | None = None
    addresses: dict[int, str] = {}
    while True:
        stamp = _stamp(path)
        if stamp is not None and stamp != seen:
            seen, addresses = stamp, _read(path, addresses)
            missing[:] = [rank for rank in range(request.launch.nodes) if rank not in addresses]
        if not missing:
            return {rank: addresses[rank] for rank in range(request.launch.nodes)}
        if not request.wait.turn(_INTERVAL):
            raise MissingError(request.wait.missed())


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: str, known: dict[int, str]) -> dict[int, str]:
    """What the file says; while it is being written, what it said before."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
        return {int(row["Rank"]): str(row["IPAddress"]) for row in rows if row.get("IPAddress")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return known
