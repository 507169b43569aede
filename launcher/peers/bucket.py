# SPDX-License-Identifier: Apache-2.0
"""Peers by the bucket, where they meet."""

from __future__ import annotations

from launcher import network
from launcher.errors import LaunchError, MissingError
from launcher.peers import Asked
from launcher.peers.meeting import gather


def find(asked: Asked) -> dict[int, str]:
    """Arrives, then waits until all have."""
    if asked.desk is None:
        raise LaunchError("peers come from the bucket, but the launch document names no `folder`")
    address = network.own_address(asked.environment, asked.desk.folder.host)
    if asked.launch.nodes == 1:
        return {0: address}
    if asked.generation and asked.desk.strangers is not None and asked.desk.strangers.members:
        raise MissingError(asked.desk.strangers.alone)
    asked.desk.arrive(asked.generation, address)
    return gather(asked.launch, asked.desk, asked.generation, asked.wait)
