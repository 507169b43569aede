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
    resource_search,
    secrets,
    users,
)


def service_operations() -> list[ApiOperation]:
    return [
        *identity.identity_operations(),
        *users.user_operations(),
        *network.network_operations(),
        *object_storage.object_storage_operations(),
        *artifacts.artifact_operations(),
        *logs.logging_operations(),
        *metrics.metric_operations(),
        *data_science.data_science_operations(),
        *secrets.secret_operations(),
        *limits.limit_operations(),
        *resource_search.search_operations(),
        *work_requests.work_request_operations(),
        *local_operations.local_operations(),
    ]
