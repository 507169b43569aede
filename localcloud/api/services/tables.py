# SPDX-License-Identifier: Apache-2.0
"""Every operation of the cloud. A new service is a module and a line here."""

from __future__ import annotations

from localcloud.api import work_requests
from localcloud.api.operations import ApiOperation
from localcloud.api.services import (
    artifacts,
    calls_door,
    data_science,
    evidence_door,
    faults_door,
    identity,
    limits,
    logs,
    metrics,
    network,
    object_storage,
    people,
    progress_door,
    secrets,
    token_door,
)


def operations() -> list[ApiOperation]:
    modules = (
        identity, people, network, object_storage, artifacts, logs, metrics, data_science, secrets, limits,
        work_requests, calls_door, evidence_door, faults_door, progress_door,
        token_door,
    )  # fmt: skip
    return [row for module in modules for row in module.operations()]
