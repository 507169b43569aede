# SPDX-License-Identifier: Apache-2.0
"""Peers by a list in the launch document: for machines whose addresses are known."""

from __future__ import annotations

from launcher.errors import LaunchError
from launcher.peers import PeerRequest


def find(request: PeerRequest) -> dict[int, str]:
    """As they are written."""
    addresses = tuple(str(address) for address in request.launch.peers["addresses"])
    if len(addresses) != request.launch.nodes:
        raise LaunchError(f"`peers` lists {len(addresses)} addresses for {request.launch.nodes} nodes")
    return dict(enumerate(addresses))
