# SPDX-License-Identifier: Apache-2.0
"""Lists the operations that the local cloud implements and lacks, by the SDKs: `python -m localcloud.oci.gaps`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

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
    "Work requests": "work_requests/work_request_client",
}
_WIDTH = 119
_HEAD = """\
<!-- Made by `python -m localcloud.oci.gaps > docs/local-cloud-gaps.md`; a test keeps it so. -->
# What the local cloud lacks

For users of the local cloud whose call was answered with `MethodNotImplemented`. This page lists every service of OCI
that the local cloud implements, with the operations that Oracle's SDK has for it. A missing operation is answered with
the status 400, the code `MethodNotImplemented` and its name, which is also in the server's log. (OCI's own status for
this code, 501, would make Oracle's provider retry for two minutes.) Services that are not listed are missing.
AWS is at the end.
"""
_AWS_HEAD = """\
## AWS

The local cloud has these services of AWS, most operations by moto. It refuses what AWS refuses (rows of
catalog/aws_refusals.toml, and the limits in botocore's models), and authorizes each call by the policies in force.
"""


@dataclass(frozen=True)
class Coverage:
    """The operations of a service: those that the local cloud has, and those that it lacks."""

    title: str
    implemented: tuple[str, ...]
    missing: tuple[str, ...]


def coverage() -> Iterator[Coverage]:
    rows = {(row.method, _shape(row.path)) for row in services.operations()}
    for title, client in SERVICES.items():
        implemented: set[str] = set()
        missing: set[str] = set()
        for method, path, name in sdk.client_operations(client):
            (implemented if (method, _shape(path)) in rows else missing).add(name)
        yield Coverage(title, tuple(sorted(implemented)), tuple(sorted(missing)))


def render() -> str:
    services = list(coverage())
    table = ["| service | implemented | missing |", "| --- | --- | --- |"]
    table += [f"| {service.title} | {len(service.implemented)} | {len(service.missing)} |" for service in services]
    parts = [_HEAD, "\n".join(table)]
    for service in services:
        parts.append(f"## {service.title}")
        parts += [_listed("Implemented", service.implemented), _listed("Missing", service.missing)]
    return "\n\n".join(part.strip() for part in (*parts, *_aws()) if part) + "\n"


def _aws() -> Iterator[str]:
    """The part about AWS. It names only operations that exist here, because AWS has thousands."""
    from localcloud.aws import gaps

    services = list(gaps.coverage())
    yield _AWS_HEAD
    table = ["| service | implemented | of |", "| --- | --- | --- |"]
    yield "\n".join([*table, *(f"| {service.title} | {len(service.there)} | {service.all} |" for service in services)])
    yield "Differences:"
    yield "\n".join(_item(text) for text in gaps.differences())
    for service in services:
        yield f"### {service.title}"
        yield _listed("Implemented", service.there)


def _item(text: str) -> str:
    return textwrap.fill(f"- {text}", _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _shape(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


def _listed(word: str, names: tuple[str, ...]) -> str:
    return textwrap.fill(f"{word}: {', '.join(names)}.", _WIDTH, break_long_words=False) if names else ""


if __name__ == "__main__":
    print(render(), end="")
