# SPDX-License-Identifier: Apache-2.0
"""Builds the Plan of a Stack. Pure: the same stack gives the same plan on every machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.frameworks import Framework, framework, parse
from components.plan.access import access_plan
from components.plan.jobs import job_plan
from components.plan.model import BucketPlan, LogsPlan, PackagesPlan, Plan, RegistryPlan
from components.plan.naming import stack_tags
from components.plan.platform import platform_of
from components.plan.ports import network_plan
from components.plan.resolved import ResolvedJob
from schemas.each import with_each
from schemas.judge import Judged
from schemas.model import NOTHING, Job, Stack
from schemas.requirements import PackageList


def build_plan(
    stack: Stack,
    own_frameworks: Mapping[str, Mapping[str, Any]] = NOTHING,
    packages: Mapping[str, PackageList] = NOTHING,
) -> Plan:
    """The plan of a checked stack. `own_frameworks`: the parsed files of the team's own frameworks, by name.
    `packages`: the packages of each job that has a requirements file."""
    used = {(job.framework, job.strategy) for job in stack.jobs.values()}
    rows = {key: _framework(*key, own_frameworks) for key in used}
    jobs = {
        name: ResolvedJob(
            with_each(job),
            job.adapted(rows[job.framework, job.strategy]),
            stack.pins_ports,
            stack.reserves_ports,
            name=name,
            packages=_packages(job, packages.get(name)),
        )
        for name, job in stack.jobs.items()
    }
    opened = {name: _framework(name, None, own_frameworks) for name in stack.network.frameworks}
    platform = platform_of(stack.platform)
    bucket, registry = _bucket(stack), _registry(stack)
    plan = Plan(
        stack=stack.name,
        team=stack.team,
        environment=stack.environment,
        platform=stack.platform,
        region=stack.region,
        tags=stack_tags(stack),
        network=network_plan(stack, jobs, opened, platform.way_to_services),
        access=access_plan(stack, bucket.name, registry.repository, platform.circumstances(stack)),
        bucket=bucket,
        registry=registry,
        logs=_logs(stack),
        uses=stack.uses.stack if stack.uses else None,
        taken=stack.uses.take if stack.uses else (),
        jobs={name: job_plan(stack, job, platform) for name, job in jobs.items()},
    )
    return platform.lower(stack, plan, jobs)


def plan_of(judged: Judged) -> Plan:
    """The plan of a checked stack without errors."""
    if judged.errors or judged.stack is None or judged.facts is None:
        raise ValueError("a stack with errors has no plan")
    own = {name: framework.columns for name, framework in judged.facts.own_frameworks.items()}
    return build_plan(judged.stack, own, judged.facts.packages)


def _framework(name: str, strategy: str | None, own: Mapping[str, Mapping[str, Any]]) -> Framework:
    return parse(own[name], strategy) if name in own else framework(name, strategy)


def _packages(job: Job, listed: PackageList | None) -> PackagesPlan | None:
    if job.requirements is None or listed is None or not listed.lines:
        return None
    lines = tuple(line.text for line in listed.lines)
    return PackagesPlan(job.requirements.file, lines, listed.places, listed.build, listed.text, listed.digest)


def _bucket(stack: Stack) -> BucketPlan:
    bucket = stack.bucket
    return BucketPlan(
        name=stack.bucket_name,
        create=stack.makes("bucket"),
        versioning=bucket.versioning,
        key=bucket.key,
        keep=bucket.keep,
    )


def _registry(stack: Stack) -> RegistryPlan:
    registry = stack.registry
    return RegistryPlan(
        repository=stack.repository_name,
        create=stack.makes("registry"),
        immutable=registry.immutable,
        keep=registry.keep,
    )


def _logs(stack: Stack) -> LogsPlan:
    return LogsPlan(
        enabled=stack.logs.enabled,
        create=stack.makes("logs"),
        group_name=stack.physical("training"),
        log_name=stack.physical("runs"),
        retention_days=stack.logs.retention_days,
    )
