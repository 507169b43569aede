# SPDX-License-Identifier: Apache-2.0
"""Builds the Plan of a Stack, with its jobs, their runs and nodes. Pure: the same stack gives the same plan on every
machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from catalog.frameworks import Framework, framework_row, parse_framework
from catalog.platforms import require_capability
from catalog.tables import table
from components.plan.expects import run_expectations
from components.plan.launch import RolePart, fill_references, make_launch_document, role_part, stall_minutes
from components.plan.model import (
    AccessPlan,
    BucketPlan,
    Grant,
    JobPlan,
    LogsPlan,
    NodePlan,
    PackagesPlan,
    Plan,
    RegistryPlan,
    RolePlan,
    RunPlan,
    Turns,
    expand_references,
    plan_references,
    stack_tags,
)
from components.plan.platform import Planning
from components.plan.ports import ResolvedJob, network_plan
from schemas.each import turns_of, with_each
from schemas.judge import Judged, judge_file
from schemas.model import NOTHING, EnvValue, Job, Run, Stack
from schemas.name_suggestions import count_noun
from schemas.requirements import PackageList

OUR_IMAGE = "${registry}"
# A command that has shown the file's warnings sets this variable, because the engine would print each three times.
WARNINGS_SHOWN = "TRAINYARD_WARNINGS_SHOWN"


def access_plan(stack: Stack, bucket: str, repository: str, circumstances: frozenset[str]) -> AccessPlan:
    """The access plan of a stack. `circumstances`: words under `when` that hold because of the platform."""
    inputs = input_buckets(stack, bucket)
    targets = {"repository": (repository,), "bucket": (bucket,), "inputs": inputs}
    holds = circumstances | {word for word, true in (("logs", stack.logs.enabled), ("inputs", bool(inputs))) if true}
    return AccessPlan(
        mode=stack.access.mode,
        create=stack.makes("access"),
        grants=tuple(grants_of_rows(table("access")["grant"], holds, targets)),
    )


def grants_of_rows(
    rows: Iterable[Mapping[str, str]], holds: frozenset[str], targets: Mapping[str, tuple[str, ...]]
) -> Iterator[Grant]:
    """The grants of the rows whose `when` holds. A row that is narrowed gives one grant for each target."""
    for row in rows:
        if "when" not in row or row["when"] in holds:
            for target in targets[row["only"]] if "only" in row else (None,):
                yield Grant(row["who"], row["does"], row["what"], row["why"], target)  # type: ignore[arg-type]


def input_buckets(stack: Stack, bucket: str) -> tuple[str, ...]:
    """Buckets of input data, without the stack's own bucket, which runs may read anyway."""
    named = (item.bucket for job in stack.jobs.values() for item in job.inputs)
    return tuple(dict.fromkeys(name for name in named if name and name != bucket))


def build_plan(
    stack: Stack,
    own_frameworks: Mapping[str, Mapping[str, Any]] = NOTHING,
    packages: Mapping[str, PackageList] = NOTHING,
) -> Plan:
    """The plan of a checked stack. `own_frameworks`: the parsed files of the team's own frameworks, by name.
    `packages`: the packages of each job that has a requirements file."""
    used = {(job.framework, job.strategy) for job in stack.jobs.values()}
    rows = {key: _own_or_built_in_framework(*key, own_frameworks) for key in used}
    jobs = {
        name: ResolvedJob(
            with_each(job),
            job.adapted(rows[job.framework, job.strategy]),
            stack.pins_ports,
            stack.reserves_ports,
            name=name,
            packages=_packages_plan(job, packages.get(name)),
        )
        for name, job in stack.jobs.items()
    }
    opened = {name: _own_or_built_in_framework(name, None, own_frameworks) for name in stack.network.frameworks}
    platform = require_capability(stack.platform, Planning)
    bucket = BucketPlan(
        name=stack.bucket_name,
        create=stack.makes("bucket"),
        versioning=stack.bucket.versioning,
        key=stack.bucket.key,
        keep=stack.bucket.keep,
    )
    registry = RegistryPlan(
        repository=stack.repository_name,
        create=stack.makes("registry"),
        immutable=stack.registry.immutable,
        keep=stack.registry.keep,
    )
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
        logs=LogsPlan(
            enabled=stack.logs.enabled,
            create=stack.makes("logs"),
            group_name=stack.physical("training"),
            log_name=stack.physical("runs"),
            retention_days=stack.logs.retention_days,
        ),
        uses=stack.uses.stack if stack.uses else None,
        taken=stack.uses.take if stack.uses else (),
        waivers=stack.waivers,
        jobs={name: job_plan(stack, job, platform) for name, job in jobs.items()},
    )
    return platform.lower(stack, plan, jobs)


def plan_of(judged: Judged) -> Plan:
    """The plan of a checked stack without errors."""
    if judged.errors or judged.stack is None or judged.facts is None:
        raise ValueError("a stack with errors has no plan")
    own = {name: framework.columns for name, framework in judged.facts.own_frameworks.items()}
    return build_plan(judged.stack, own, judged.facts.packages)


def _own_or_built_in_framework(name: str, strategy: str | None, own: Mapping[str, Mapping[str, Any]]) -> Framework:
    return parse_framework(own[name], strategy) if name in own else framework_row(name, strategy)


def _packages_plan(job: Job, listed: PackageList | None) -> PackagesPlan | None:
    if job.requirements is None or listed is None or not listed.lines:
        return None
    lines = tuple(line.text for line in listed.lines)
    return PackagesPlan(job.requirements.file, lines, listed.places, listed.build, listed.text, listed.digest)


def job_plan(stack: Stack, resolved: ResolvedJob, platform: Planning) -> JobPlan:
    job, name, framework = resolved.spec, resolved.name, resolved.framework
    rendezvous = platform.rendezvous(job.layout)
    parts = {role: role_part(stack, resolved, role, rendezvous.source, platform.names_code) for role in resolved.roles}
    return JobPlan(
        name=name,
        was=job.was.names,
        called=job.was.first(name),
        display_name=stack.physical(name),
        framework=job.framework,
        strategy=framework.strategy,
        ranks=f"{framework.rank}; {rendezvous.words}",
        layout=job.layout,
        image=expand_references(job.image, plan_references(stack, job.was.first(name))),
        image_is_ours=job.image.startswith(OUR_IMAGE),
        shape=job.shape,
        roles=tuple(_role_plan(resolved, role) for role in resolved.roles),
        code=job.code,
        packages=resolved.packages,
        inputs=job.inputs,
        block_storage_gb=job.block_storage_gb,
        maximum_runtime_minutes=job.maximum_runtime_minutes,
        stall_minutes=stall_minutes(resolved),
        expects=run_expectations(resolved, platform.rule_place(stack, job), platform.planned_nodes(stack, resolved)),
        keep=job.keep,
        runs={key: _run_plan(stack, resolved, key, parts, platform) for key in job.runs},
    )


def _role_plan(job: ResolvedJob, role: str) -> RolePlan:
    spec = job.spec.roles[role]
    wanted = spec.completion.min_succeeded
    return RolePlan(
        name=role,
        called=job.called(role),
        replicas=spec.replicas,
        mode=job.framework.roles[role].mode,
        ports=job.listens_on(role),
        minimum_success=spec.replicas if wanted is None or wanted < 0 else min(wanted, spec.replicas),
        carries=job.framework.roles[role].carries,
        reserved=tuple(row.label for row in job.active_ports() if role in row.listens and job.is_reserved(row)),
    )


def _run_plan(
    stack: Stack, job: ResolvedJob, run_name: str, parts: Mapping[str, RolePart], platform: Planning
) -> RunPlan:
    run = job.spec.runs[run_name]
    # A renamed run keeps its folder, and its nodes keep calling it by its oldest name.
    names = plan_references(stack, job.spec.was.first(job.name), run.was.first(run_name))
    groups = job.spec.layout == "node-groups"
    # On a platform that trains one run of a job at a time, runs wait in that platform's own queue.
    turns = turns_of(stack.jobs[job.name], run_name) if platform.runs_at_once else None
    nodes = (
        _node_group_plans(job, run, names, parts, platform)
        if groups
        else _single_node_plans(job, run, names, parts, platform)
    )
    return RunPlan(
        name=run_name,
        was=run.was.names,
        display_name=stack.physical(job.name, run_name),
        attempt=run.attempt,
        until=run.until,
        nodes=tuple(nodes),
        turns=Turns(*turns) if turns else None,
    )


def _single_node_plans(
    job: ResolvedJob, run: Run, names: Mapping[str, str], parts: Mapping[str, RolePart], platform: Planning
) -> Iterator[NodePlan]:
    rank = 0
    for role, part in parts.items():
        ranks, own = range(rank, rank + job.spec.roles[role].replicas), _team_variables(job.spec, run, role, names)
        for index, of_platform in enumerate(platform.environments(job, part, names, run, ranks)):
            node = f"{part.called}-{index}"
            environment: dict[str, EnvValue] = {**of_platform, **own}
            launch = make_launch_document(part, names, job, run, node, ranks[index])
            yield NodePlan(node, part.called, ranks[index], environment, launch)
        rank = ranks.stop


def _node_group_plans(
    job: ResolvedJob, run: Run, names: Mapping[str, str], parts: Mapping[str, RolePart], platform: Planning
) -> Iterator[NodePlan]:
    rank, of_platform = 0, platform.group_environment(job)
    for role, part in parts.items():
        plan = _role_plan(job, role)
        launch = make_launch_document(part, names, job, run, part.called, None)
        environment = {**of_platform, **_team_variables(job.spec, run, role, names)}
        yield NodePlan(part.called, part.called, rank, environment, launch, plan.replicas, plan.minimum_success)
        rank += plan.replicas


def _team_variables(job: Job, run: Run, role: str, names: Mapping[str, str]) -> dict[str, EnvValue]:
    """The team's variables: those of the run override the role's, and the role's override the job's."""
    return {
        **fill_references(job.env, names),
        **fill_references(job.roles[role].env, names),
        **fill_references(run.env, names),
    }


class StackFileError(Exception):
    """The stack file has errors, so it has no plan. `judged` holds the findings."""

    def __init__(self, judged: Judged) -> None:
        super().__init__(f"{judged.source.file} has errors")
        self.judged = judged


def plan_file(file: Path, tell: Callable[[str], None], folder: Path | None = None) -> Plan:
    """The plan of a stack file. `folder`: what its paths are relative to, if it is a copy."""
    return plan_of(judge_usable_file(file, tell, folder=folder))


def judge_usable_file(
    file: Path, tell: Callable[[str], None], show: Callable[[Judged], None] | None = None, folder: Path | None = None
) -> Judged:
    """A stack file without errors. Remarks that do not prevent its use are shown or counted."""
    judged = judge_file(file, str(file), folder=folder)
    if judged.errors or judged.stack is None:
        raise StackFileError(judged)
    if judged.findings and show:
        show(judged)
    elif judged.findings:
        tell(f"{count_noun(len(judged.findings), 'remark')}: trainyard check {file} shows them")
    return judged
