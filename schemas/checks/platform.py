# SPDX-License-Identifier: Apache-2.0
"""What a platform lacks, and why: rows of catalog/platforms.toml, and where a stack asks for each feature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from schemas.checks.registry import Wrong, at, rule
from schemas.facts import Facts
from schemas.findings import Path
from schemas.model import Job, Role, Stack
from schemas.names import listing

_FeatureUse = Callable[[Stack], Iterator[Path]]


def _roles(stack: Stack) -> Iterator[tuple[Path, Job, Role]]:
    for name, job in stack.jobs.items():
        for role, spec in job.roles.items():
            yield at("jobs", name, "roles", role), job, spec


def _failed_nodes(stack: Stack) -> Iterator[Path]:
    """Only in node groups: in other layouts the launchers follow this policy themselves."""
    for path, job, role in _roles(stack):
        if job.layout == "node-groups" and role.completion.min_failed != 1:
            yield (*path, "completion", "minFailed")


def _node_groups(stack: Stack) -> Iterator[Path]:
    return (at("jobs", name, "layout") for name, job in stack.jobs.items() if job.layout == "node-groups")


def _network(stack: Stack) -> Iterator[Path]:
    if stack.network != type(stack.network)():
        yield at("network")


def _inputs(stack: Stack) -> Iterator[Path]:
    return (at("jobs", name, "inputs") for name, job in stack.jobs.items() if job.inputs)


# Feature of a platform's `lacks` -> where a stack asks for it.
FEATURES: Mapping[str, _FeatureUse] = {
    "failed-nodes": _failed_nodes,
    "node-groups": _node_groups,
    "network": _network,
    "inputs": _inputs,
}


@rule("TY901", "the platform cannot do this")
def lacking(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    row = facts.platforms[stack.platform]
    lacks: Mapping[str, str] = row.get("lacks", {})
    instead: Mapping[str, str] = row.get("instead", {})
    for feature, reason in lacks.items():
        remedy = instead.get(feature, "remove it, or choose another platform")
        for path in FEATURES[feature](stack):
            yield Wrong(path, f"{stack.platform} cannot do this: {reason}", remedy)


@rule("TY903", "the platform does not train with this framework")
def not_trained(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    row = facts.platforms[stack.platform]
    trained: Sequence[str] | None = row.get("trains")
    for name, job in stack.jobs.items():
        if trained is not None and job.framework not in trained:
            message = f"{stack.platform} does not train with `{job.framework}`: {row['why']}"
            yield Wrong(at("jobs", name, "framework"), message, f"use {listing(trained)}, or another platform")


@rule("TY902", "the platform is not deployed to yet", severity="warning")
def not_deployed(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    if not facts.platforms[stack.platform]["deploys"]:
        message = f"this release of trainyard checks and plans for {stack.platform}, but does not deploy to it yet"
        deploying = [name for name, row in facts.platforms.items() if row["deploys"]]
        yield Wrong(at("platform"), message, f"to deploy, use {listing(deploying)}")
