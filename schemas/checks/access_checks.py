# SPDX-License-Identifier: Apache-2.0
"""Checks of access, and of concerns that are taken from another stack."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields

from catalog.platforms import platform_word
from schemas.checks.network_checks import is_production_stack
from schemas.convert import default_of
from schemas.facts import Facts
from schemas.findings import Path, Wrong, at, rule
from schemas.model import Stack
from schemas.name_suggestions import quoted_list

# Keys that a stack may set although it takes the concern from another stack.
_OWN_ANYWAY = {("access", "mode"), ("access", "users"), ("network", "flow_log")}
_STACK = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


@rule("TY704", "proof-of-concept access in a production environment")
def proof_of_concept_access(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.access.mode == "proof-of-concept" and is_production_stack(stack):
        message = f"gives the runs far more than they need, and `{stack.environment}` is a production environment"
        yield Wrong(at("access", "mode"), message, "use `least-privilege`")


@rule("TY707", "a concern is taken from another stack and described here too")
def taken_and_own(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is None:
        return
    for concern in stack.uses.take:
        part = getattr(stack, concern)
        # A stack names its access mode and its users even if another stack grants the access.
        own = [column for column in fields(part) if (concern, column.name) not in _OWN_ANYWAY]
        if any(getattr(part, column.name) != default_of(column) for column in own):
            message = f"`{concern}` is taken from the stack {stack.uses.stack}, but also described here"
            yield Wrong(at(concern), message, f"remove it here, or remove `{concern}` under `uses`")


@rule("TY709", "the stack is not named as organization/project/stack")
def stack_reference(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is not None and not _STACK.fullmatch(stack.uses.stack):
        message = f"`{stack.uses.stack}` does not name a stack"
        yield Wrong(
            at("uses", "stack"),
            message,
            "write organization/project/stack; with a backend of your own, the organization is `organization`",
        )


@rule("TY714", "a stack that takes from itself")
def takes_from_itself(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is not None and stack.uses.stack.endswith(f"/trainyard/{stack.name}"):
        message = f"`{stack.uses.stack}` is this stack, which cannot take from itself"
        yield Wrong(at("uses", "stack"), message, "name the stack that owns what this one takes")


# Feature in a platform's `lacks` -> the places where a stack requests it.
FEATURES: Mapping[str, Callable[[Stack], Iterable[Path]]] = {
    # Only in node groups: in other layouts the launchers follow this policy themselves.
    "failed-nodes": lambda stack: [
        at("jobs", name, "roles", role, "completion", "minFailed")
        for name, job in stack.jobs.items()
        if job.layout == "node-groups"
        for role, spec in job.roles.items()
        if spec.completion.min_failed != 1
    ],
    "node-groups": lambda stack: [
        at("jobs", name, "layout") for name, job in stack.jobs.items() if job.layout == "node-groups"
    ],
    "network": lambda stack: [at("network")] if stack.network != type(stack.network)() else [],
    "inputs": lambda stack: [at("jobs", name, "inputs") for name, job in stack.jobs.items() if job.inputs],
}


@rule("TY901", "the platform cannot do this")
def lacking_feature(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    platform = facts.platforms[stack.platform]
    for feature, reason in platform.lacks.items():
        remedy = platform.instead.get(feature, "remove it, or choose another platform")
        for path in FEATURES[feature](stack):
            yield Wrong(path, f"{platform_word(stack.platform)} cannot do this: {reason}", remedy)


@rule("TY903", "the platform does not train with this framework")
def not_trained(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        trains, why = stack.frameworks_of(job)
        if trains is not None and job.framework not in trains:
            message = f"{platform_word(stack.platform)} does not train with `{job.framework}`: {why}"
            yield Wrong(at("jobs", name, "framework"), message, f"use {quoted_list(trains)}, or another platform")


@rule("TY902", "the platform is not deployed to yet", severity="warning")
def not_deployed(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    if not facts.platforms[stack.platform].deploys:
        word = platform_word(stack.platform)
        message = f"this release of trainyard checks and plans for {word}, but does not deploy to it yet"
        deploying = [name for name, platform in facts.platforms.items() if platform.deploys]
        yield Wrong(at("platform"), message, f"to deploy, use {quoted_list(deploying)}")
