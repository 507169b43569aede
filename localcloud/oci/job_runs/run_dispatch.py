# SPDX-License-Identifier: Apache-2.0
"""Gives accepted job runs to the hosts as assignments, and records their states."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from catalog.imports import imported_modules
from catalog.tables import table
from localcloud.hosts import evidence
from localcloud.hosts.assignment import Assignment, CannotStartError, Group, NodeWork, Outline, RunCode, RunVerdict
from localcloud.hosts.node_setup import METADATA
from localcloud.oci import tenancy
from localcloud.oci.access_decisions import may_mount, may_pull, may_write_log
from localcloud.oci.job_runs import run_network, run_resources
from localcloud.oci.job_runs.run_resources import MayUse, NodeLog, mounted_buckets, principal_of
from localcloud.oci.ocids import RUN_ACTIVE, RUN_TERMINAL
from localcloud.oci.operations import OciCloud
from localcloud.oci.sdk import oci_client_variables
from localcloud.oci.services.logs import record_flows
from localcloud.oci.services.network import subnets
from localcloud.oci.tenancy_store import StoredResource
from localcloud.server import http

BEGUN_AGAIN = "Begun again: the local cloud was killed while the run was in progress, and its hosts with it"
# A node group that has run is ACTIVE in NodeGroupDetails, which does not have the states of runs.
_GROUP_STATES = {"FAILED": "FAILED"}
_GIBIBYTE = 1 << 30
_ENTRY = "JOB_RUN_ENTRYPOINT"
_LAUNCH = "TRAINYARD_LAUNCH"
_UNPACKED = "decompressed_artifact"


class JobRuns:
    """The job runs of one cloud."""

    def __init__(self, cloud: OciCloud) -> None:
        self._cloud = cloud

    def unfinished(self) -> Iterator[tuple[str, bool]]:
        for run in self._cloud.store.live("job-run"):
            if run.state in RUN_ACTIVE:
                yield run.id, run.state == "CANCELING"

    def outline(self, run: str) -> Outline | None:
        current = self._current(run)
        job = self._cloud.store.get(current.body["jobId"])
        return outline_of(current, job) if job else None

    async def assignment(self, run: str, folder: Path) -> Assignment:
        return await build_run_assignment(self._cloud, self._current(run), folder)

    def begins_again(self, run: str) -> None:
        again = self._current(run)
        if again.state == "IN_PROGRESS":
            with self._cloud.store.transaction():
                again = self._current(run)
                self._cloud.store.put(again, body={**again.body, "lifecycleDetails": BEGUN_AGAIN})

    def started(self, run: str) -> None:
        self._change(run, "IN_PROGRESS", "", timeStarted=http.format_rfc3339(http.current_moment()))

    def ended(self, run: str, verdict: RunVerdict, folder: Path) -> None:
        more: dict[str, Any] = {"timeFinished": http.format_rfc3339(http.current_moment())}
        if verdict.groups:
            more["nodeGroupDetailsList"] = [
                {"name": name, "lifecycleState": _GROUP_STATES.get(state, "ACTIVE")} for name, state in verdict.groups
            ]
        self._record_flows(run, folder)
        self._change(run, verdict.state, verdict.details, **more)
        run_resources.remove_token(folder)

    def _record_flows(self, run: str, folder: Path) -> None:
        """Records flows before the run's VNICs are removed. A flow log keeps its records."""
        document, current = evidence.read_evidence(folder), self._cloud.store.get(run)
        if document is not None and current is not None:
            with self._cloud.store.transaction():
                record_flows(self._cloud, current, document)
        self._cloud.recorded_flows.pop(run, None)

    def _change(self, run_id: str, state: str, details: str, **more: Any) -> None:
        with self._cloud.store.transaction():
            run = self._cloud.store.get(run_id)
            if run is None or not run.live or (state == "IN_PROGRESS" and run.state != "ACCEPTED"):
                return
            body = {**run.body, "lifecycleDetails": details, **more}
            self._cloud.store.put(run, state=state, body=body)
            if state in RUN_TERMINAL:
                subnets.detach_vnics(self._cloud.store, run_id)

    def _current(self, run_id: str) -> StoredResource:
        run = self._cloud.store.get(run_id)
        if run is None:
            raise CannotStartError("The run is gone")
        return run


@dataclass(frozen=True)
class NodeGroup:
    """A group with the configuration of its nodes."""

    group: Group
    configuration: Mapping[str, Any]
    container: Mapping[str, Any]
    infrastructure: Mapping[str, Any] = field(default_factory=dict)

    @property
    def memory(self) -> int:
        """The memory of the shape, or of the machines of a compute target, in bytes; 0 if it is not given."""
        resources = self.infrastructure.get("resourceConfiguration") or {}
        if share := resources.get("resourceLimitConfiguration") or resources.get("resourceRequestConfiguration"):
            return int(float(share["memoryInGBs"]) * _GIBIBYTE)
        chosen = (self.infrastructure.get("jobShapeConfigDetails") or {}).get("memoryInGBs")
        row = table("shapes").get(str(self.infrastructure.get("shapeName")), {})
        return int(float(chosen or row.get("memory_gib") or 0) * _GIBIBYTE)

    @property
    def disk(self) -> int:
        """The disk in bytes, 0 if it is not given."""
        return int(self.infrastructure.get("blockStorageSizeInGBs") or 0) * _GIBIBYTE


def run_groups(run: StoredResource, job: StoredResource) -> list[NodeGroup]:
    """The node groups of a run. A run without node groups is one group with one node."""
    configuration = _merge_configuration(
        job.body.get("jobConfigurationDetails"), run.body.get("jobConfigurationOverrideDetails")
    )
    container = _run_or_job_details(
        run, job, "jobEnvironmentConfigurationOverrideDetails", "jobEnvironmentConfigurationDetails"
    )
    infrastructure = _run_or_job_details(
        run, job, "jobInfrastructureConfigurationOverrideDetails", "jobInfrastructureConfigurationDetails"
    )
    groups = []
    for group in _run_layout(run, job).get("jobNodeGroupConfigurationDetailsList") or [{"name": ""}]:
        replicas = group.get("replicas", 1)
        groups.append(
            NodeGroup(
                Group(group["name"], replicas, group.get("minimumSuccessReplicas", replicas)),
                _merge_configuration(configuration, group.get("jobConfigurationDetails")),
                group.get("jobEnvironmentConfigurationDetails") or container,
                group.get("jobInfrastructureConfigurationDetails") or infrastructure,
            )
        )
    return groups


def outline_of(run: StoredResource, job: StoredResource) -> Outline:
    """The number of nodes, and how long they may run."""
    groups = run_groups(run, job)
    minutes = _run_layout(run, job).get("maximumRuntimeInMinutes")
    minutes = int(minutes or groups[0].configuration.get("maximumRuntimeInMinutes") or 0)
    return Outline([each.group for each in groups], minutes)


def _run_layout(run: StoredResource, job: StoredResource) -> dict[str, Any]:
    return _run_or_job_details(run, job, "jobNodeConfigurationOverrideDetails", "jobNodeConfigurationDetails")


def _run_or_job_details(run: StoredResource, job: StoredResource, overriding: str, own: str) -> dict[str, Any]:
    return run.body.get(overriding) or job.body.get(own) or {}


def _merge_configuration(base: Mapping[str, Any] | None, over: Mapping[str, Any] | None) -> dict[str, Any]:
    merged = {**(base or {}), **{name: value for name, value in (over or {}).items() if value is not None}}
    variables = {**((base or {}).get("environmentVariables") or {}), **((over or {}).get("environmentVariables") or {})}
    return {**merged, "environmentVariables": variables}


@dataclass(frozen=True)
class _RunParts:
    """A run with its job and its project."""

    run: StoredResource
    job: StoredResource
    project: StoredResource

    def identities(self) -> dict[str, str]:
        return {
            "TENANCY_OCID": tenancy.TENANCY,
            "PROJECT_OCID": self.project.id,
            "PROJECT_COMPARTMENT_OCID": self.project.compartment,
            "JOB_OCID": self.job.id,
            "JOB_COMPARTMENT_OCID": self.job.compartment,
            "JOB_RUN_OCID": self.run.id,
            "JOB_RUN_COMPARTMENT_OCID": self.run.compartment,
        }


async def build_run_assignment(cloud: OciCloud, run: StoredResource, folder: Path) -> Assignment:
    """Issues the run's token, attaches its VNICs, and checks whether it may use the resources that it names."""
    seconds = await run_resources.write_token(cloud, run, folder)
    job, project = (cloud.store.get(run.body[name]) for name in ("jobId", "projectId"))
    if job is None or project is None:
        raise CannotStartError("The job or the project of the run is gone")
    parts, principal, outline = _RunParts(run, job, project), principal_of(run), outline_of(run, job)
    subnet = cloud.store.get(run.body.get("subnet", ""))
    attached = run_network.attach_run_vnics(cloud, run, subnet, len(outline.groups_by_rank)) if subnet else []
    may_write = partial(may_write_log, cloud.access, principal)

    def lines(group: str, rank: int) -> NodeLog:
        return NodeLog(cloud.store, run, f"{group}/{rank}" if group else str(rank), may_write)

    artifact, folder_of_all = job.body.get("artifact"), cloud.home / "artifacts"
    code = RunCode(folder_of_all / artifact["file"], artifact["name"], _ENTRY, _UNPACKED) if artifact else None
    modules = await asyncio.to_thread(imported_modules, code.file) if code else frozenset[str]()
    return Assignment(
        id=run.id,
        name=run.name,
        folder=folder,
        outline=outline,
        works=list(_node_works(cloud, parts, modules, partial(may_pull, cloud.access, principal))),
        code=code,
        mounts=list(mounted_buckets(run, job, cloud.store, cloud.objects, partial(may_mount, cloud.access, principal))),
        subnet=run_network.subnet_of(subnet) if subnet else None,
        interfaces=[run_network.interface_of(cloud, vnic) for vnic in attached],
        lines=lambda group, rank: lines(group, rank).write,
        upkeep=partial(run_resources.keep_token_renewed, cloud, run.id, folder, seconds),
        small_disk=cloud.faults.disk_bytes(),
    )


def _node_works(cloud: OciCloud, parts: _RunParts, modules: frozenset[str], may_pull: MayUse) -> Iterator[NodeWork]:
    groups = [each for each in run_groups(parts.run, parts.job) for _ in range(each.group.replicas)]
    for rank, each in enumerate(groups):
        image = str(each.container.get("image", ""))
        variables = each.configuration.get("environmentVariables", {})
        yield NodeWork(
            run_resources.image_command(cloud.store, each.container, may_pull),
            tuple(shlex.split(each.configuration.get("commandLineArguments", ""))),
            variables.get(_ENTRY, ""),
            partial(_run_environment, parts, each, rank, len(groups)),
            run_resources.stand_in_name(cloud.store, image, variables.get(_LAUNCH, ""), modules),
            image,
            each.memory,
            each.disk,
        )


def _run_environment(
    parts: _RunParts, each: NodeGroup, rank: int, count: int, endpoints: Sequence[str], given: str
) -> Mapping[str, str]:
    variables = {
        **oci_client_variables(*endpoints),
        **run_resources.token_variables(given),
        **each.configuration.get("environmentVariables", {}),
        **parts.identities(),
    }
    if count > 1 or each.group.name:
        variables |= {"NODE_RANK": str(rank), "NODE_COUNT": str(count), "INITIAL_CLUSTER_SIZE": str(count)}
        variables["CLUSTER_NODES_METADATA_FILE"] = f"{given}/{METADATA}"
    return variables
