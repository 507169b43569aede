# SPDX-License-Identifier: Apache-2.0
"""Lists the operations that the local OCI implements and lacks, by Oracle's SDK."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from localcloud.gaps import operations_line
from localcloud.oci import sdk, services

# The SDK's clients of the services that the local cloud has, at least in part.
SERVICES = {
    "Identity": "identity/identity_client",
    "Core networking": "core/virtual_network_client",
    "Object Storage": "object_storage/object_storage_client",
    "Artifacts": "artifacts/artifacts_client",
    "Data Science": "data_science/data_science_client",
    "Logging": "logging/logging_management_client",
    "Logging ingestion": "loggingingestion/logging_client",
    "Logging search": "loggingsearch/log_search_client",
    "Monitoring": "monitoring/monitoring_client",
    "Vault": "vault/vaults_client",
    "Secrets": "secrets/secrets_client",
    "Limits": "limits/limits_client",
    "Search": "resource_search/resource_search_client",
    "Work requests": "work_requests/work_request_client",
}
_HEAD = """\
For users of the local cloud whose call was answered with `MethodNotImplemented`. This page lists every service of OCI
that the local cloud implements, with the operations that Oracle's SDK has for it. A missing operation is answered with
the status 400, the code `MethodNotImplemented` and its name, which is also in the server's log. (OCI's own status for
this code, 501, would make Oracle's provider retry for two minutes.) Services that are not listed are missing.
AWS is at the end.
"""


@dataclass(frozen=True)
class Coverage:
    """The operations of a service: those that the local cloud has, and those that it lacks."""

    title: str
    implemented: tuple[str, ...]
    missing: tuple[str, ...]


def sdk_coverage() -> Iterator[Coverage]:
    rows = {(row.method, _path_shape(row.path)) for row in services.service_operations()}
    for title, client in SERVICES.items():
        implemented: set[str] = set()
        missing: set[str] = set()
        for method, path, name in sdk.client_operations(client):
            (implemented if (method, _path_shape(path)) in rows else missing).add(name)
        yield Coverage(title, tuple(sorted(implemented)), tuple(sorted(missing)))


def gap_paragraphs() -> Iterator[str]:
    services = list(sdk_coverage())
    yield _HEAD
    table = ["| service | implemented | missing |", "| --- | --- | --- |"]
    table += [f"| {service.title} | {len(service.implemented)} | {len(service.missing)} |" for service in services]
    yield "\n".join(table)
    for service in services:
        yield f"## {service.title}"
        yield operations_line("Implemented", service.implemented)
        yield operations_line("Missing", service.missing)


def _path_shape(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)
