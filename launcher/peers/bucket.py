# SPDX-License-Identifier: Apache-2.0
"""Peers by the bucket, where they meet."""

from __future__ import annotations

from launcher import network
from launcher.errors import LaunchError, MissingError
from launcher.peers import PeerRequest
from launcher.peers.meeting import gather


def find(request: PeerRequest) -> dict[int, str]:
    """Arrives, then waits until all have."""
    if request.desk is None:
        raise LaunchError("peers come from the bucket, but the launch document names no `folder`")
    address = network.own_address(request.environment, request.desk.folder.host)
    if request.launch.nodes == 1:
        return {0: address}
    if request.generation and request.desk.strangers is not None and request.desk.strangers.members:
        raise MissingError(request.desk.strangers.alone)
    request.desk.arrive(request.generation, address)
    return gather(request.launch, request.desk, request.generation, request.wait)
