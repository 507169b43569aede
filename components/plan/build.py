# SPDX-License-Identifier: Apache-2.0
"""From a Stack to its Plan. Pure: the same stack gives the same plan, anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.frameworks import Framework, framework, parse
from components.plan.access import access_plan
from components.plan.jobs import job_plan
from components.plan.model import BucketPlan, LogsPlan, Plan, ProjectPlan, RegistryPlan, VaultPlan
from components.plan.naming import physical, tags
from components.plan.ports import network_plan
from schemas.judge import Judged
from schemas.model import NOTHING, Stack


def build_plan(stack: Stack, own_frameworks: Mapping[str, Mapping[str, Any]] = NOTHING) -> Plan:
    """The plan of a checked stack. `own_frameworks`: the parsed files of the team's own frameworks, by name."""
    asked = {(job.framework, job.strategy) for job in stack.jobs.values()}
    rows = {key: _framework(*key, own_frameworks) for key in asked}
    frameworks = {name: rows[job.framework, job.strategy] for name, job in stack.jobs.items()}
    opened = {name: _framework(name, None, own_frameworks) for name in stack.network.frameworks}
    bucket, registry = _bucket(stack), _registry(stack)
    return Plan(
        stack=stack.name,
        team=stack.team,
        environment=stack.environment,
        platform=stack.platform,
        region=stack.region,
        compartment=stack.compartment,
        tenancy=stack.tenancy,
        tags=tags(stack),
        network=network_plan(stack, frameworks, opened),
        access=access_plan(stack, frameworks, bucket.name, registry.repository),
        bucket=bucket,
        registry=registry,
        logs=_logs(stack),
        project=_project(stack),
        uses=stack.uses.stack if stack.uses else None,
        taken=stack.uses.take if stack.uses else (),
        vault=VaultPlan(stack.vault.vault, stack.vault.key, stack.vault.secrets) if stack.vault else None,
        jobs={name: job_plan(stack, name, frameworks[name]) for name in stack.jobs},
    )


def plan_of(judged: Judged) -> Plan:
    """The plan of a stack that was judged and found without errors."""
    if judged.errors or judged.stack is None or judged.facts is None:
        raise ValueError("a stack with errors has no plan")
    own = {name: framework.columns for name, framework in judged.facts.own_frameworks.items()}
    return build_plan(judged.stack, own)


def _framework(name: str, strategy: str | None, own: Mapping[str, Mapping[str, Any]]) -> Framework:
    return parse(own[name], strategy) if name in own else framework(name, strategy)


def _taken(stack: Stack, concern: str) -> bool:
    return stack.uses is not None and concern in stack.uses.take


def _bucket(stack: Stack) -> BucketPlan:
    bucket = stack.bucket
    return BucketPlan(
        name=bucket.existing or bucket.name or physical(stack, "training"),
        create=not (bucket.existing or _taken(stack, "bucket")),
        versioning=bucket.versioning,
        key=bucket.key,
        keep=bucket.keep,
    )


def _registry(stack: Stack) -> RegistryPlan:
    registry = stack.registry
    return RegistryPlan(
        repository=registry.existing or registry.repository or f"{stack.team}/{stack.environment}/training",
        create=not (registry.existing or _taken(stack, "registry")),
        immutable=registry.immutable,
        keep=registry.keep,
    )


def _logs(stack: Stack) -> LogsPlan:
    logs = stack.logs
    return LogsPlan(
        enabled=logs.enabled,
        # A log group may exist without the log: then one is made in it.
        create=logs.enabled and not ((logs.existing and logs.existing.log) or _taken(stack, "logs")),
        group_name=physical(stack, "training"),
        log_name=physical(stack, "runs"),
        group=logs.existing.group if logs.existing else None,
        log=logs.existing.log if logs.existing else None,
        retention_days=logs.retention_days,
    )


def _project(stack: Stack) -> ProjectPlan:
    project = stack.project
    return ProjectPlan(
        name=project.name or physical(stack, "training"),
        create=not (project.existing or _taken(stack, "project")),
        project=project.existing,
    )
