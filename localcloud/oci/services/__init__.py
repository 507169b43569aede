# SPDX-License-Identifier: Apache-2.0
"""The services of the local OCI, a module or package each. `operations` lists the operations of all of them.

A service has its kinds and operations as rows, and handlers for rows with behaviour of their own.
"""

from __future__ import annotations

from localcloud.oci import limits, work_requests
from localcloud.oci.operations import ApiOperation
from localcloud.oci.services import (
    artifacts,
    data_science,
    identity,
    local_operations,
    logs,
    metrics,
    network,
    object_storage,
    secrets,
    users,
)


def operations() -> list[ApiOperation]:
    modules = (
        identity, users, network, object_storage, artifacts, logs, metrics, data_science, secrets, limits,
        work_requests, local_operations,
    )  # fmt: skip
    return [row for module in modules for row in module.operations()]
