# SPDX-License-Identifier: Apache-2.0
"""What a platform lacks, and why: rows of catalog/platforms.toml, and how each feature is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from schemas.checks.registry import Wrong, at, rule
from schemas.facts import Facts
from schemas.findings import Path
from schemas.model import Job, Network, Role, Stack

_Asked = Callable[[Stack], Iterator[Path]]


def _roles(stack: Stack) -> Iterator[tuple[Path, Job, Role]]:
    for name, job in stack.jobs.items():
        for role, spec in job.roles.items():
            yield at("jobs", name, "roles", role), job, spec


def _failed_nodes(stack: Stack) -> Iterator[Path]:
    """Elsewhere the launchers keep this policy by themselves."""
    for path, job, role in _roles(stack):
        if job.layout == "node-groups" and role.completion.min_failed != 1:
            yield (*path, "completion", "minFailed")


def _node_groups(stack: Stack) -> Iterator[Path]:
    return (at("jobs", name, "layout") for name, job in stack.jobs.items() if job.layout == "node-groups")


def _network(stack: Stack) -> Iterator[Path]:
    if stack.network != Network():
        yield at("network")


def _vault(stack: Stack) -> Iterator[Path]:
    if stack.vault is not None:
        yield at("vault")


def _logs(stack: Stack) -> Iterator[Path]:
    if stack.logs.existing is not None:
        yield at("logs", "existing")


def _framework(name: str) -> _Asked:
    return lambda stack: (at("jobs", key, "framework") for key, job in stack.jobs.items() if job.framework == name)


# Feature of a platform's `lacks` -> where a stack asks for it.
FEATURES: Mapping[str, _Asked] = {
    "failed-nodes": _failed_nodes,
    "node-groups": _node_groups,
    "network": _network,
    "vault": _vault,
    "oci-logs": _logs,
    "framework-dask": _framework("dask"),
    "framework-horovod": _framework("horovod"),
    "framework-tensorflow": _framework("tensorflow"),
}


@rule("TY901", "the platform cannot do this")
def lacking(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    lacks: Mapping[str, str] = facts.platforms[stack.platform].get("lacks", {})
    for feature, reason in lacks.items():
        for path in FEATURES[feature](stack):
            yield Wrong(path, f"{stack.platform} cannot do this: {reason}", "remove it, or choose another platform")


@rule("TY902", "the platform is not deployed to yet")
def not_deployed(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    if not facts.platforms[stack.platform]["deploys"]:
        message = f"this release of trainyard does not deploy to {stack.platform}"
        yield Wrong(at("platform"), message, "use `oci`")
