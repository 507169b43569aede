# SPDX-License-Identifier: Apache-2.0
"""TensorFlow: TF_CONFIG names every task of the cluster, and which of them this node is."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping

from launcher.document import Launch
from launcher.errors import LaunchError

# A chief leads parameter servers. Without them there is no chief: worker 0 leads, as in Keras' tutorial.
_SERVERS, _CHIEF, _WORKER = "ps", "chief", "worker"
_LEADER = "main"
_KERAS_2 = "TF_USE_LEGACY_KERAS"


def values(launch: Launch, addresses: tuple[str, ...]) -> Mapping[str, str]:
    """TF_CONFIG, which every multi-node strategy reads. A strategy without ports has no cluster."""
    if not launch.ports:
        return {}
    cluster: dict[str, list[str]] = {}
    task = {}
    of_ranks = [role.name for role in launch.roles for _ in range(role.replicas)]
    for rank, role in enumerate(of_ranks):
        members = cluster.setdefault(_task_type(launch, role), [])
        if rank == launch.rank:
            task = {"type": _task_type(launch, role), "index": len(members)}
        # A role without a port of its own name (the chief of parameter servers) uses that of the workers.
        label = role if role in launch.ports else next(iter(launch.ports))
        ports = launch.port_numbers(label, rank)
        if not ports:
            raise LaunchError("TF_CONFIG needs a port for every task: give the stack's `ports` a number for `worker`")
        members.append(f"{addresses[rank]}:{ports[0]}")
    return {"tf_config": json.dumps({"cluster": cluster, "task": task})}


def variables(launch: Launch, environment: Mapping[str, str]) -> dict[str, str]:
    """Keras 3 cannot `fit` on several workers. So `tf.keras` is set to Keras 2 there, if that is installed and the job
    does not set the variable itself."""
    chosen = _KERAS_2 in environment or not launch.ports or importlib.util.find_spec("tf_keras") is None
    return {} if chosen else {_KERAS_2: "1"}


def _task_type(launch: Launch, role: str) -> str:
    """TensorFlow's name of a role."""
    served = any(spec.name == _SERVERS for spec in launch.roles)
    return role if role != _LEADER else _CHIEF if served else _WORKER
