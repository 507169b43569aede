# SPDX-License-Identifier: Apache-2.0
"""Peers by OpenPAI's environment, which names every task's address and ports before any of them starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launcher.document import LaunchError
from launcher.peers import Asked

ROLE, INDEX = "PAI_CURRENT_TASK_ROLE_NAME", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"


def rank(document: Mapping[str, Any], environment: Mapping[str, str]) -> int:
    """Tasks are counted role by role, in the document's order."""
    name, index = environment.get(ROLE), environment.get(INDEX, "")
    first = 0
    for role in document["roles"]:
        if role["name"] == name and index.isdigit():
            return first + int(index)
        first += int(role["replicas"])
    raise LaunchError(f"{ROLE} and {INDEX} do not name a task of this run: start it as an OpenPAI job")


def find(asked: Asked) -> dict[int, str]:
    """Everything is known at once."""
    addresses = []
    for role in asked.launch.roles:
        for index in range(role.replicas):
            name = f"PAI_HOST_IP_{role.name}_{index}"
            if not asked.environment.get(name):
                raise LaunchError(f"{name} is not set: OpenPAI tells every task's address by such variables")
            addresses.append(asked.environment[name])
    return dict(enumerate(addresses))
