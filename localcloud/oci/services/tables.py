# SPDX-License-Identifier: Apache-2.0
"""All operations of the local OCI. A new service is a module and a line here."""

from __future__ import annotations

from localcloud.oci import work_requests
from localcloud.oci.operations import ApiOperation
from localcloud.oci.services import (
    artifacts,
    data_science,
    identity,
    limits,
    local_operations,
    logs,
    metrics,
    network,
    object_storage,
    people,
    resource_tokens,
    secrets,
)


def operations() -> list[ApiOperation]:
    modules = (
        identity, people, network, object_storage, artifacts, logs, metrics, data_science, secrets, limits,
        work_requests, local_operations,
        resource_tokens,
    )  # fmt: skip
    return [row for module in modules for row in module.operations()]
