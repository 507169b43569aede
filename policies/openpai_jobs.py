# SPDX-License-Identifier: Apache-2.0
"""Reads the job of OpenPAI in the properties of a run: version 2 of its protocol, as an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policies.rule import JudgedResource, Unknown

RUN = "trainyard:index:Run"
# The key that the cluster shows only to the owner of the job.
SECRETS = "secrets"


def protocol_of_run(resource: JudgedResource) -> Mapping[str, Any]:
    """The run's protocol. A run on another platform has none."""
    protocol = resource.properties.get("protocol")
    return {} if protocol is None else _known_or_empty(protocol)


def roles_of(resource: JudgedResource) -> Mapping[str, Mapping[str, Any]]:
    return _known_or_empty(protocol_of_run(resource).get("taskRoles") or {})


def plain_texts(value: Any) -> Iterator[str | Unknown]:
    """The texts of a protocol that all users of the cluster can read."""
    if isinstance(value, str | Unknown):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key != SECRETS:
                yield from plain_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from plain_texts(inner)


def commands_of(protocol: Mapping[str, Any]) -> Iterator[str | Unknown]:
    """The commands of roles, and those that deployments run before and after them."""
    yield from plain_texts([role.get("commands") or [] for role in (protocol.get("taskRoles") or {}).values()])
    for deployment in protocol.get("deployments") or []:
        yield from plain_texts([*(deployment.get("taskRoles") or {}).values()])


def sample_openpai_run(**differences: Any) -> JudgedResource:
    """A run that passes every rule, for the examples of rules. `differences` replace keys of its protocol."""
    role = {
        "instances": 2,
        "completion": {"minFailedInstances": 1, "minSucceededInstances": 2},
        "taskRetryCount": 0,
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 8, "memoryMB": 16384, "gpu": 2, "ports": {"SyncPort": 1}},
        "commands": ["export MASTER_PORT=$PAI_PORT_LIST_worker_0_SyncPort", "python train.py"],
    }
    whole: dict[str, Any] = {
        "protocolVersion": 2,
        "type": "job",
        "jobRetryCount": 0,
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "openpai/standard:python_3.6"}],
        "taskRoles": {"worker": role},
    }
    of_role = differences.pop("role", None)
    if of_role is not None:
        whole["taskRoles"] = {"worker": {key: value for key, value in {**role, **of_role}.items() if value is not None}}
    return JudgedResource(RUN, {"platform": "openpai", "protocol": {**whole, **differences}})


def _known_or_empty(value: Any) -> Mapping[str, Any]:
    """The value, or {}. Raises NotKnownError if a preview does not know the value."""
    return value if value else {}
