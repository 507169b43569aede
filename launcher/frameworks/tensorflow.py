# SPDX-License-Identifier: Apache-2.0
"""TensorFlow: TF_CONFIG names every task of the cluster, and which of them this node is."""

from __future__ import annotations

import json
from collections.abc import Mapping

from launcher.document import Launch, LaunchError

# What TensorFlow calls our roles, where it has another word.
_TASKS = {"main": "chief"}


def values(launch: Launch, addresses: tuple[str, ...]) -> Mapping[str, str]:
    """TF_CONFIG as every strategy of several nodes reads it; one without ports has no cluster to tell of."""
    if not launch.ports:
        return {}
    cluster = {
        _task(role.name): [f"{addresses[rank]}:{_port(launch, role.name)}" for rank in launch.ranks_of(role.name)]
        for role in launch.roles
        if role.replicas
    }
    task = {"type": _task(launch.role), "index": launch.rank - launch.ranks_of(launch.role)[0]}
    return {"tf_config": json.dumps({"cluster": cluster, "task": task})}


def _task(role: str) -> str:
    return _TASKS.get(role, role)


def _port(launch: Launch, role: str) -> int:
    """The port named after the role; a role without one (the chief of parameter servers) borrows the workers'."""
    port = launch.ports.get(role) or next(iter(launch.ports.values()), None)
    if port is None or port.range is None:
        raise LaunchError("TF_CONFIG needs a port for every task: give the stack's `ports` a number for `worker`")
    return port.range[0]
