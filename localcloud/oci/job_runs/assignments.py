# SPDX-License-Identifier: Apache-2.0
"""Makes an assignment from a job run: the work of its nodes, and the resources that the run may use."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from catalog.imports import imported_modules
from catalog.tables import table
from localcloud.hosts.assignment import (
    Assignment,
    CannotStartError,
    Group,
    Interface,
    MountedFiles,
    NetworkReach,
    NodeWork,
    Outline,
    RunCode,
    Subnet,
)
from localcloud.hosts.node_setup import METADATA
from localcloud.oci import tenancy
from localcloud.oci.access import may_attach, may_mount, may_pull, may_write_log
from localcloud.oci.job_runs import rules, run_resources
from localcloud.oci.job_runs.rules import rules_of
from localcloud.oci.job_runs.run_resources import NodeLog, principal_of
from localcloud.oci.operations import OciCloud
from localcloud.oci.sdk import client_variables
from localcloud.oci.services.network import subnets
from localcloud.oci.services.object_storage import buckets, listing
from localcloud.oci.store import StateStore, StoredResource
from localcloud.server.errors import ApiError

_GIBIBYTE = 1 << 30
_DEFAULT_PATH = "/mnt"
MayMount = Callable[[StoredResource], bool]
_ENTRY = "JOB_RUN_ENTRYPOINT"
_LAUNCH = "TRAINYARD_LAUNCH"
_UNPACKED = "decompressed_artifact"


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
    """The number of nodes, and how long they may run."""
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


def mounted_buckets(
    run: StoredResource, job: StoredResource, store: StateStore, objects: Path, may_mount: MayMount
) -> Iterator[MountedFiles]:
    overridden = run.body.get("jobStorageMountConfigurationOverrideDetailsList")
    for row in overridden or job.body.get("jobStorageMountConfigurationDetailsList") or []:
        bucket = _bucket(store, row, may_mount)
        prefix = row.get("prefix") or ""
        prefix = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        items = listing.select_objects(store, bucket, {"prefix": prefix})
        target = PurePosixPath("/", row.get("destinationPath") or _DEFAULT_PATH, row["destinationDirectoryName"])
        yield MountedFiles(str(target), [(item.name[len(prefix) :], objects / item.file) for item in items])


def _bucket(store: StateStore, row: dict[str, Any], may_mount: MayMount) -> StoredResource:
    if row["storageType"] != "OBJECT_STORAGE":
        raise CannotStartError("The local cloud mounts only buckets: it has no File Storage")
    name = row["bucket"]
    named = store.live(buckets.KIND, name=name) if row["namespace"] == tenancy.NAMESPACE else []
    if not named or not may_mount(named[0]):
        raise CannotStartError(f"The bucket {name} cannot be mounted: it does not exist, or the run may not read it")
    return named[0]


@dataclass(frozen=True)
class _Run:
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


async def assignment_of(cloud: OciCloud, run: StoredResource, folder: Path) -> Assignment:
    """Issues the run's token, attaches its VNICs, and checks whether it may use the resources that it names."""
    seconds = await run_resources.write_token(cloud, run, folder)
    job, project = (cloud.store.get(run.body[name]) for name in ("jobId", "projectId"))
    if job is None or project is None:
        raise CannotStartError("The job or the project of the run is gone")
    whole, principal, outline = _Run(run, job, project), principal_of(run), outline_of(run, job)
    subnet = cloud.store.get(run.body.get("subnet", ""))
    attached = _attach(cloud, run, subnet, len(outline.placed)) if subnet else []
    may_write = partial(may_write_log, cloud.access, principal)

    def lines(group: str, rank: int) -> NodeLog:
        return NodeLog(cloud.store, run, f"{group}/{rank}" if group else str(rank), may_write)

    code = _code(cloud, job)
    modules = await asyncio.to_thread(imported_modules, code.file) if code else frozenset[str]()
    return Assignment(
        id=run.id,
        name=run.name,
        folder=folder,
        outline=outline,
        works=list(_works(cloud, whole, modules, partial(may_pull, cloud.access, principal))),
        code=code,
        mounts=list(mounted_buckets(run, job, cloud.store, cloud.objects, partial(may_mount, cloud.access, principal))),
        subnet=_subnet(subnet) if subnet else None,
        interfaces=[_interface(cloud, vnic) for vnic in attached],
        lines=lambda group, rank: lines(group, rank).give,
        upkeep=partial(run_resources.keep_token_renewed, cloud, run.id, folder, seconds),
    )


def _attach(cloud: OciCloud, run: StoredResource, subnet: StoredResource, count: int) -> list[StoredResource]:
    """A VNIC for every node, by rank."""
    if not may_attach(cloud.access, subnet):
        raise CannotStartError(
            f"The Data Science service may not use the subnet {subnet.id}: a policy must let service datascience"
            " use virtual-network-family in its compartment"
        )
    try:
        with cloud.store.transaction():
            return subnets.attach(cloud.store, run, subnet, count)
    except ApiError as error:
        raise CannotStartError(error.message) from None


def _subnet(subnet: StoredResource) -> Subnet:
    router = rules.router(subnet)
    return Subnet(subnet.id, subnet.parent, router, subnets.mac_address(router), rules.prefix_length(subnet))


def _interface(cloud: OciCloud, vnic: StoredResource) -> Interface:
    def reach() -> NetworkReach | None:
        subnet = cloud.store.get(vnic.parent)
        if subnet is None:
            return None
        return NetworkReach(rules_of(cloud.store, subnet, vnic), rules.destinations(cloud.store, subnet))

    return Interface(vnic.id, str(vnic.body["privateIp"]), str(vnic.body["macAddress"]), reach)


def _works(
    cloud: OciCloud, whole: _Run, modules: frozenset[str], may_pull: run_resources.MayPull
) -> Iterator[NodeWork]:
    groups = [each for each in groups_of(whole.run, whole.job) for _ in range(each.group.replicas)]
    for rank, each in enumerate(groups):
        image = str(each.container.get("image", ""))
        variables = each.configuration.get("environmentVariables", {})
        yield NodeWork(
            run_resources.image_command(cloud.store, each.container, may_pull),
            tuple(shlex.split(each.configuration.get("commandLineArguments", ""))),
            variables.get(_ENTRY, ""),
            partial(_environment, whole, each, rank, len(groups)),
            run_resources.stand_in_name(cloud.store, image, variables.get(_LAUNCH, ""), modules),
            image,
            each.memory,
            each.disk,
        )


def _environment(
    whole: _Run, each: NodeGroup, rank: int, count: int, endpoints: Sequence[str], given: str
) -> Mapping[str, str]:
    variables = {
        **client_variables(*endpoints),
        **run_resources.token_variables(given),
        **each.configuration.get("environmentVariables", {}),
        **whole.identities(),
    }
    if count > 1 or each.group.name:
        variables |= {"NODE_RANK": str(rank), "NODE_COUNT": str(count), "INITIAL_CLUSTER_SIZE": str(count)}
        variables["CLUSTER_NODES_METADATA_FILE"] = f"{given}/{METADATA}"
    return variables


def _code(cloud: OciCloud, job: StoredResource) -> RunCode | None:
    artifact = job.body.get("artifact")
    if not artifact:
        return None
    return RunCode(cloud.home / "artifacts" / artifact["file"], artifact["name"], _ENTRY, _UNPACKED)
