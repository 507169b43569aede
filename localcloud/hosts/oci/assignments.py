# SPDX-License-Identifier: Apache-2.0
"""A job run as an assignment: what its nodes are to do, and what the run may have."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from catalog.imports import imported_modules
from localcloud.api import tenancy
from localcloud.api.access import may_attach, may_mount, may_pull, may_write_log
from localcloud.api.clients import client_variables
from localcloud.api.errors import ApiError
from localcloud.api.operations import LocalCloud
from localcloud.api.services.network import vnics
from localcloud.api.store import StoredResource
from localcloud.hosts.assignment import Assignment, CannotStartError, Interface, NetworkReach, NodeWork, RunCode, Subnet
from localcloud.hosts.oci import images, mounts, routes, run_principal
from localcloud.hosts.oci.bodies import NodeGroup, groups_of, outline_of
from localcloud.hosts.oci.log import NodeLog
from localcloud.hosts.oci.rules import rules_of
from localcloud.hosts.workplace import METADATA

_ENTRY = "JOB_RUN_ENTRYPOINT"
_LAUNCH = "TRAINYARD_LAUNCH"
_UNPACKED = "decompressed_artifact"


@dataclass(frozen=True)
class _Run:
    """A run with what it belongs to."""

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


async def assignment_of(cloud: LocalCloud, run: StoredResource, folder: Path) -> Assignment:
    """Hands out the run's token, attaches its VNICs, and looks whether it may have what it names."""
    seconds = await run_principal.write(cloud, run, folder)
    job, project = (cloud.store.get(run.body[name]) for name in ("jobId", "projectId"))
    if job is None or project is None:
        raise CannotStartError("The job or the project of the run is gone")
    whole, principal, outline = _Run(run, job, project), run_principal.principal_of(run), outline_of(run, job)
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
        mounts=list(
            mounts.mounted_buckets(run, job, cloud.store, cloud.objects, partial(may_mount, cloud.access, principal))
        ),
        subnet=_subnet(subnet) if subnet else None,
        interfaces=[_interface(cloud, vnic) for vnic in attached],
        lines=lambda group, rank: lines(group, rank).give,
        upkeep=partial(run_principal.keep_renewed, cloud, run.id, folder, seconds),
    )


def _attach(cloud: LocalCloud, run: StoredResource, subnet: StoredResource, count: int) -> list[StoredResource]:
    """A VNIC for every node, by rank."""
    if not may_attach(cloud.access, subnet):
        raise CannotStartError(
            f"The Data Science service may not use the subnet {subnet.id}: a policy must let service datascience"
            " use virtual-network-family in its compartment"
        )
    try:
        with cloud.store.transaction():
            return vnics.attach(cloud.store, run, subnet, count)
    except ApiError as error:
        raise CannotStartError(error.message) from None


def _subnet(subnet: StoredResource) -> Subnet:
    router = routes.router(subnet)
    return Subnet(subnet.id, subnet.parent, router, vnics.mac_address(router), routes.prefix_length(subnet))


def _interface(cloud: LocalCloud, vnic: StoredResource) -> Interface:
    def reach() -> NetworkReach | None:
        subnet = cloud.store.get(vnic.parent)
        if subnet is None:
            return None
        return NetworkReach(rules_of(cloud.store, subnet, vnic), routes.destinations(cloud.store, subnet))

    return Interface(vnic.id, str(vnic.body["privateIp"]), str(vnic.body["macAddress"]), reach)


def _works(cloud: LocalCloud, whole: _Run, modules: frozenset[str], may_pull: images.MayPull) -> Iterator[NodeWork]:
    groups = [each for each in groups_of(whole.run, whole.job) for _ in range(each.group.replicas)]
    for rank, each in enumerate(groups):
        image = str(each.container.get("image", ""))
        variables = each.configuration.get("environmentVariables", {})
        yield NodeWork(
            images.command(cloud.store, each.container, may_pull),
            tuple(shlex.split(each.configuration.get("commandLineArguments", ""))),
            variables.get(_ENTRY, ""),
            partial(_environment, whole, each, rank, len(groups)),
            images.stand_in_name(cloud.store, image, variables.get(_LAUNCH, ""), modules),
            image,
            each.memory,
            each.disk,
        )


def _environment(
    whole: _Run, each: NodeGroup, rank: int, count: int, endpoints: Sequence[str], given: str
) -> Mapping[str, str]:
    variables = {
        **client_variables(*endpoints),
        **run_principal.environment(given),
        **each.configuration.get("environmentVariables", {}),
        **whole.identities(),
    }
    if count > 1 or each.group.name:
        variables |= {"NODE_RANK": str(rank), "NODE_COUNT": str(count), "INITIAL_CLUSTER_SIZE": str(count)}
        variables["CLUSTER_NODES_METADATA_FILE"] = f"{given}/{METADATA}"
    return variables


def _code(cloud: LocalCloud, job: StoredResource) -> RunCode | None:
    artifact = job.body.get("artifact")
    if not artifact:
        return None
    return RunCode(cloud.home / "artifacts" / artifact["file"], artifact["name"], _ENTRY, _UNPACKED)
