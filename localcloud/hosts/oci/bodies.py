# SPDX-License-Identifier: Apache-2.0
"""Reads groups, containers and limits from the bodies of a job and its run. The run's overrides come first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog.tables import table
from localcloud.api.store import StoredResource
from localcloud.hosts.assignment import Group, Outline

_GIBIBYTE = 1 << 30


@dataclass(frozen=True)
class NodeGroup:
    """A group with what its nodes are configured with."""

    group: Group
    configuration: Mapping[str, Any]
    container: Mapping[str, Any]
    infrastructure: Mapping[str, Any] = field(default_factory=dict)

    @property
    def memory(self) -> int:
        """The memory of the shape, or that asked of a compute target, in bytes; 0 if it is not given."""
        asked = self.infrastructure.get("resourceConfiguration") or {}
        if share := asked.get("resourceLimitConfiguration") or asked.get("resourceRequestConfiguration"):
            return int(float(share["memoryInGBs"]) * _GIBIBYTE)
        chosen = (self.infrastructure.get("jobShapeConfigDetails") or {}).get("memoryInGBs")
        row = table("shapes").get(str(self.infrastructure.get("shapeName")), {})
        return int(float(chosen or row.get("memory_gib") or 0) * _GIBIBYTE)

    @property
    def disk(self) -> int:
        """The disk in bytes, 0 if it is not given."""
        return int(self.infrastructure.get("blockStorageSizeInGBs") or 0) * _GIBIBYTE


def groups_of(run: StoredResource, job: StoredResource) -> list[NodeGroup]:
    """A run without node groups is one group of one."""
    configuration = _merged(job.body.get("jobConfigurationDetails"), run.body.get("jobConfigurationOverrideDetails"))
    container = _first(run, job, "jobEnvironmentConfigurationOverrideDetails", "jobEnvironmentConfigurationDetails")
    infrastructure = _first(
        run, job, "jobInfrastructureConfigurationOverrideDetails", "jobInfrastructureConfigurationDetails"
    )
    groups = []
    for group in _layout(run, job).get("jobNodeGroupConfigurationDetailsList") or [{"name": ""}]:
        replicas = group.get("replicas", 1)
        groups.append(
            NodeGroup(
                Group(group["name"], replicas, group.get("minimumSuccessReplicas", replicas)),
                _merged(configuration, group.get("jobConfigurationDetails")),
                group.get("jobEnvironmentConfigurationDetails") or container,
                group.get("jobInfrastructureConfigurationDetails") or infrastructure,
            )
        )
    return groups


def outline_of(run: StoredResource, job: StoredResource) -> Outline:
    """How many nodes there are, and for how long they may run."""
    groups = groups_of(run, job)
    minutes = _layout(run, job).get("maximumRuntimeInMinutes")
    minutes = int(minutes or groups[0].configuration.get("maximumRuntimeInMinutes") or 0)
    return Outline([each.group for each in groups], minutes)


def _layout(run: StoredResource, job: StoredResource) -> dict[str, Any]:
    return _first(run, job, "jobNodeConfigurationOverrideDetails", "jobNodeConfigurationDetails")


def _first(run: StoredResource, job: StoredResource, overriding: str, own: str) -> dict[str, Any]:
    return run.body.get(overriding) or job.body.get(own) or {}


def _merged(base: Mapping[str, Any] | None, over: Mapping[str, Any] | None) -> dict[str, Any]:
    merged = {**(base or {}), **{name: value for name, value in (over or {}).items() if value is not None}}
    variables = {**((base or {}).get("environmentVariables") or {}), **((over or {}).get("environmentVariables") or {})}
    return {**merged, "environmentVariables": variables}
