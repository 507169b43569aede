# SPDX-License-Identifier: Apache-2.0
"""What a run is given before it starts: its code, a token of its own, and VNICs in its subnet."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa

from localcloud.api import tenancy
from localcloud.api.access import may_attach, may_mount, may_pull, may_write_log
from localcloud.api.errors import ApiError
from localcloud.api.operations import Cloud
from localcloud.api.principals import Principal
from localcloud.api.services.network import vnics
from localcloud.api.services.token_door import RESOURCE_TYPES
from localcloud.api.store import Resource
from localcloud.hosts.workplace import GIVEN, Assignment, CannotStartError


async def assignment_of(cloud: Cloud, run: Resource, folder: Path) -> Assignment:
    job, project = (cloud.store.get(run.body[name]) for name in ("jobId", "projectId"))
    if job is None or project is None:
        raise CannotStartError("The job or the project of the run is gone")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    artifact = job.body.get("artifact")
    return Assignment(
        run, job, project, folder,
        cloud.home / "artifacts" / artifact["file"] if artifact else None,
        artifact["name"] if artifact else "",
        await _resource_principal(cloud, run, folder),
        partial(may_pull, cloud.access, _principal(run)),
        partial(may_mount, cloud.access, _principal(run)),
        partial(may_write_log, cloud.access, _principal(run)),
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


async def _resource_principal(cloud: Cloud, run: Resource, folder: Path) -> Mapping[str, str]:
    key = await asyncio.to_thread(rsa.generate_private_key, public_exponent=65537, key_size=2048)
    (folder / GIVEN).mkdir(exist_ok=True)
    token, pem = folder / GIVEN / "rpst", folder / GIVEN / "rpst-key.pem"
    for path, content in (
        (token, cloud.credentials.issue(_principal(run), key.public_key()).encode()),
        (pem, tenancy.private_pem(key)),
    ):
        tenancy.write_secret(path, content)
        path.chmod(0o444)  # for the run's user: nobody else gets into the run's folder
    return {
        "OCI_RESOURCE_PRINCIPAL_VERSION": "2.2",
        "OCI_RESOURCE_PRINCIPAL_RPST": str(token),
        "OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM": str(pem),
        "OCI_RESOURCE_PRINCIPAL_REGION": tenancy.REGION,
    }


def _principal(run: Resource) -> Principal:
    kind = RESOURCE_TYPES["job-run"]
    return Principal(run.id, run.id, tenancy.TENANCY, resource_kind=kind, compartment=run.compartment)
