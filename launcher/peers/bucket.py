# SPDX-License-Identifier: Apache-2.0
"""Peers by the bucket, where they meet."""

from __future__ import annotations

from launcher import network
from launcher.document import LaunchError, MissingError
from launcher.peers import Asked
from launcher.peers.meeting import gather


def find(asked: Asked) -> dict[int, str]:
    """Arrives, then waits until all have."""
    if asked.desk is None:
        raise LaunchError("peers come from the bucket, but the launch document names no `folder`")
    address = network.own_address(asked.environment, asked.desk.folder.connection.host_name)
    if asked.launch.nodes == 1:
        return {0: address}
    if asked.generation and asked.desk.ads is not None and asked.desk.ads.members:
        raise MissingError("nodes whose images ADS built do not start again with the others: raise `attempt`")
    asked.desk.arrive(asked.generation, address)
    return gather(asked.launch, asked.desk, asked.generation, asked.wait)
