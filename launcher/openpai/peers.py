# SPDX-License-Identifier: Apache-2.0
"""Peers by OpenPAI's environment, which names every task's address before any of them starts.

Tasks that are retried one by one start one by one, too. The first of them are not told the addresses of the later
ones, so they meet in the run's folder.
"""

from __future__ import annotations

from launcher.errors import LaunchError
from launcher.openpai.identity import host_variable
from launcher.peers import PeerRequest
from launcher.peers.meeting import gather


def find(request: PeerRequest) -> dict[int, str]:
    """Everything is known at once, as a rule."""
    launch, told = request.launch, request.environment
    names = [host_variable(role.name, index) for role in launch.roles for index in range(role.replicas)]
    missing = [name for name in names if not told.get(name)]
    own, alone = launch.identity.address(), launch.identity.starts_nodes_again
    if alone and request.desk is not None and own:
        # Also who knows all others is expected by those who came before.
        request.desk.arrive(request.generation, own)
    if not missing:
        return {rank: told[name] for rank, name in enumerate(names)}
    if not alone or request.desk is None or not own:
        raise LaunchError(f"{missing[0]} is not set: OpenPAI sets such a variable to the address of each task")
    return gather(launch, request.desk, request.generation, request.wait)
