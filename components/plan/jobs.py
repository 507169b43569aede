# SPDX-License-Identifier: Apache-2.0
"""Jobs, runs and nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from catalog.frameworks import Framework
from components.plan.launch import Part, ads_environment, document, filled, part_of, stall_minutes
from components.plan.model import JobPlan, NodePlan, RolePlan, RunPlan
from components.plan.naming import expand, known, physical
from components.plan.ports import of_role
from schemas.model import EnvValue, Job, Layout, Run, Stack

OUR_IMAGE = "${registry}"
# How the launcher learns of the others' addresses.
MEET: Mapping[Layout, str] = {
    "run-per-node": "addresses are exchanged in the bucket",
    "node-groups": "addresses and ranks are those of OCI's own list of nodes",
}


def job_plan(stack: Stack, name: str, framework: Framework) -> JobPlan:
    job = stack.jobs[name]
    parts = {role: part_of(stack, job, framework, role) for role in _ordered(framework, job)}
    return JobPlan(
        name=name,
        was=job.was.names,
        called=job.was.first(name),
        display_name=physical(stack, name),
        framework=job.framework,
        strategy=framework.strategy,
        ranks=f"{framework.rank}; {MEET[job.layout]}",
        layout=job.layout,
        image=expand(job.image, known(stack, job.was.first(name))),
        image_is_ours=job.image.startswith(OUR_IMAGE),
        shape=job.shape,
        roles=tuple(_role(framework, job, role) for role in _ordered(framework, job)),
        code=job.code,
        inputs=job.inputs,
        block_storage_gb=job.block_storage_gb,
        maximum_runtime_minutes=job.maximum_runtime_minutes,
        stall_minutes=stall_minutes(job, framework),
        runs={key: _run(stack, name, key, framework, parts) for key in job.runs},
    )


def _ordered(framework: Framework, job: Job) -> list[str]:
    """Roles as the framework lists them, its main role first: ranks follow this order."""
    return [role for role in framework.roles if role in job.roles and job.roles[role].replicas]


def _role(framework: Framework, job: Job, role: str) -> RolePlan:
    spec = job.roles[role]
    wanted = spec.completion.min_succeeded
    return RolePlan(
        name=role,
        called=spec.was.first(role),
        replicas=spec.replicas,
        mode=framework.roles[role].mode,
        ports=of_role(framework, job, role),
        minimum_success=spec.replicas if wanted is None or wanted < 0 else min(wanted, spec.replicas),
        carries=framework.roles[role].carries,
    )


def _run(stack: Stack, job_name: str, run_name: str, framework: Framework, parts: Mapping[str, Part]) -> RunPlan:
    job = stack.jobs[job_name]
    run = job.runs[run_name]
    nodes = _groups if job.layout == "node-groups" else _single_nodes
    # A run that was renamed goes on where it was: its folder, and what its nodes are told, keep the oldest name.
    names = known(stack, job.was.first(job_name), run.was.first(run_name))
    return RunPlan(
        name=run_name,
        was=run.was.names,
        display_name=physical(stack, job_name, run_name),
        attempt=run.attempt,
        until=run.until,
        nodes=tuple(nodes(job, run, names, framework, parts)),
    )


def _single_nodes(
    job: Job, run: Run, names: Mapping[str, str], framework: Framework, parts: Mapping[str, Part]
) -> Iterator[NodePlan]:
    rank = 0
    for role, part in parts.items():
        told, own = ads_environment(part, names, run), _own(job, run, role, names)
        # ADS counts parameter servers apart.
        counted = framework.roles[role].mode != "PS"
        for index in range(job.roles[role].replicas):
            node = f"{part.called}-{index}"
            environment: dict[str, EnvValue] = {**told, **({"RANK": str(rank)} if counted else {}), **own}
            yield NodePlan(node, part.called, rank, environment, document(part, names, job, run, node, rank))
            rank += 1


def _groups(
    job: Job, run: Run, names: Mapping[str, str], framework: Framework, parts: Mapping[str, Part]
) -> Iterator[NodePlan]:
    rank = 0
    for role, part in parts.items():
        plan = _role(framework, job, role)
        launch = document(part, names, job, run, part.called, None)
        environment = _own(job, run, role, names)
        yield NodePlan(part.called, part.called, rank, environment, launch, plan.replicas, plan.minimum_success)
        rank += plan.replicas


def _own(job: Job, run: Run, role: str, names: Mapping[str, str]) -> dict[str, EnvValue]:
    """The team's variables: the run's win over the role's, the role's over the job's."""
    return {**filled(job.env, names), **filled(job.roles[role].env, names), **filled(run.env, names)}
