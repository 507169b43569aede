# SPDX-License-Identifier: Apache-2.0
"""Plans of jobs, of their runs and nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from components.plan.launch import RolePart, fill_references, launch_document, role_part, stall_minutes
from components.plan.model import JobPlan, NodePlan, RolePlan, RunPlan, Turns, expand, plan_references
from components.plan.platform import Platform
from components.plan.ports import ResolvedJob
from schemas.each import turns_of
from schemas.model import EnvValue, Job, Run, Stack

OUR_IMAGE = "${registry}"


def job_plan(stack: Stack, resolved: ResolvedJob, platform: Platform) -> JobPlan:
    job, name, framework = resolved.spec, resolved.name, resolved.framework
    meeting = platform.meeting(job.layout)
    parts = {role: role_part(stack, resolved, role, meeting.source, platform.names_code) for role in resolved.roles}
    return JobPlan(
        name=name,
        was=job.was.names,
        called=job.was.first(name),
        display_name=stack.physical(name),
        framework=job.framework,
        strategy=framework.strategy,
        ranks=f"{framework.rank}; {meeting.words}",
        layout=job.layout,
        image=expand(job.image, plan_references(stack, job.was.first(name))),
        image_is_ours=job.image.startswith(OUR_IMAGE),
        shape=job.shape,
        roles=tuple(_role(resolved, role) for role in resolved.roles),
        code=job.code,
        packages=resolved.packages,
        inputs=job.inputs,
        block_storage_gb=job.block_storage_gb,
        maximum_runtime_minutes=job.maximum_runtime_minutes,
        stall_minutes=stall_minutes(resolved),
        keep=job.keep,
        runs={key: _run(stack, resolved, key, parts, platform) for key in job.runs},
    )


def _role(job: ResolvedJob, role: str) -> RolePlan:
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


def _run(stack: Stack, job: ResolvedJob, run_name: str, parts: Mapping[str, RolePart], platform: Platform) -> RunPlan:
    run = job.spec.runs[run_name]
    # A renamed run keeps its folder, and its nodes keep calling it by its oldest name.
    names = plan_references(stack, job.spec.was.first(job.name), run.was.first(run_name))
    groups = job.spec.layout == "node-groups"
    # Where runs of a job train one after the other anyway, none waits before it is in the queue.
    turns = turns_of(stack.jobs[job.name], run_name) if platform.runs_at_once else None
    nodes = _groups(job, run, names, parts, platform) if groups else _single_nodes(job, run, names, parts, platform)
    return RunPlan(
        name=run_name,
        was=run.was.names,
        display_name=stack.physical(job.name, run_name),
        attempt=run.attempt,
        until=run.until,
        nodes=tuple(nodes),
        turns=Turns(*turns) if turns else None,
    )


def _single_nodes(
    job: ResolvedJob, run: Run, names: Mapping[str, str], parts: Mapping[str, RolePart], platform: Platform
) -> Iterator[NodePlan]:
    rank = 0
    for role, part in parts.items():
        ranks, own = range(rank, rank + job.spec.roles[role].replicas), _own(job.spec, run, role, names)
        for index, of_platform in enumerate(platform.environments(job, part, names, run, ranks)):
            node = f"{part.called}-{index}"
            environment: dict[str, EnvValue] = {**of_platform, **own}
            launch = launch_document(part, names, job, run, node, ranks[index])
            yield NodePlan(node, part.called, ranks[index], environment, launch)
        rank = ranks.stop


def _groups(
    job: ResolvedJob, run: Run, names: Mapping[str, str], parts: Mapping[str, RolePart], platform: Platform
) -> Iterator[NodePlan]:
    rank, of_platform = 0, platform.group_environment(job)
    for role, part in parts.items():
        plan = _role(job, role)
        launch = launch_document(part, names, job, run, part.called, None)
        environment = {**of_platform, **_own(job.spec, run, role, names)}
        yield NodePlan(part.called, part.called, rank, environment, launch, plan.replicas, plan.minimum_success)
        rank += plan.replicas


def _own(job: Job, run: Run, role: str, names: Mapping[str, str]) -> dict[str, EnvValue]:
    """The team's variables: those of the run override the role's, and the role's override the job's."""
    return {
        **fill_references(job.env, names),
        **fill_references(job.roles[role].env, names),
        **fill_references(run.env, names),
    }
