# SPDX-License-Identifier: Apache-2.0
"""What a run is given before it starts: its code, a token of its own, and VNICs in its subnet."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from localcloud.api.access import may_attach, may_mount, may_pull, may_write_log
from localcloud.api.errors import ApiError
from localcloud.api.operations import Cloud
from localcloud.api.services.network import vnics
from localcloud.api.store import Resource
from localcloud.hosts import run_principal
from localcloud.hosts.workplace import Assignment, CannotStartError


async def assignment_of(cloud: Cloud, run: Resource, folder: Path) -> Assignment:
    job, project = (cloud.store.get(run.body[name]) for name in ("jobId", "projectId"))
    if job is None or project is None:
        raise CannotStartError("The job or the project of the run is gone")
    artifact, principal = job.body.get("artifact"), run_principal.of_run(run)
    return Assignment(
        run, job, project, folder,
        cloud.home / "artifacts" / artifact["file"] if artifact else None,
        artifact["name"] if artifact else "",
        run_principal.environment(folder),
        partial(may_pull, cloud.access, principal),
        partial(may_mount, cloud.access, principal),
        partial(may_write_log, cloud.access, principal),
    )  # fmt: skip


def attach(cloud: Cloud, run: Resource, count: int) -> list[Resource]:
    """A VNIC in the subnet for every node by rank; none where the run names no subnet."""
    subnet = cloud.store.get(run.body.get("subnet", ""))
    if subnet is None:
        return []
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
