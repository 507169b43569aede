# SPDX-License-Identifier: Apache-2.0
"""Peers by OpenPAI's environment, which names every task's address and ports before any of them starts."""

from __future__ import annotations

from launcher.errors import LaunchError
from launcher.peers import PeerRequest


def find(request: PeerRequest) -> dict[int, str]:
    """Everything is known at once."""
    addresses = []
    for role in request.launch.roles:
        for index in range(role.replicas):
            name = f"PAI_HOST_IP_{role.name}_{index}"
            if not request.environment.get(name):
                raise LaunchError(f"{name} is not set: OpenPAI sets such a variable to the address of each task")
            addresses.append(request.environment[name])
    return dict(enumerate(addresses))
