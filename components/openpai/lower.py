# SPDX-License-Identifier: Apache-2.0
"""From the neutral plan to OpenPAI's: the cluster, where results go, and who tries a failed task again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from catalog.tables import table
from components.openpai.plan import ClusterPlan, OpenPaiJobPlan, OpenPaiPlan, StoragePlan, StorePlan, TaskRolePlan
from components.openpai.stack import OpenPaiJob, OpenPaiStack
from components.plan.access import grants
from components.plan.model import JobPlan, NodePlan, Plan, RunPlan, extend
from components.plan.resolved import ResolvedJob
from schemas.model import EnvValue, Role

# The protocol counts retries from 0, in 32 bits. So many are without limit.
ENDLESS = 2**31 - 1


def lower(stack: OpenPaiStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> OpenPaiPlan:
    cluster, store = stack.cluster, _store(stack)
    targets = {
        "virtual-cluster": (cluster.virtual_cluster,),
        "storage": (store.storage.name,) if store.storage else (),
        "bucket": () if store.storage else (plan.bucket.name,),
    }
    own = tuple(grants(table("openpai")["grant"], frozenset(), targets))
    return extend(
        OpenPaiPlan,
        plan,
        access=replace(plan.access, grants=own),
        cluster=ClusterPlan(
            cluster.uri.rstrip("/"), cluster.user, cluster.token, cluster.virtual_cluster, cluster.certificate
        ),
        store=store,
        registry_address=stack.registry.existing or "",
        jobs={name: _job(stack, stack.jobs[name], jobs[name], job) for name, job in plan.jobs.items()},
    )


def _store(stack: OpenPaiStack) -> StorePlan:
    """A storage comes first: its folder is there for every task, and needs no keys."""
    if stack.storage is not None:
        mount = stack.storage.mount or f"/mnt/{stack.storage.name}"
        folder = stack.storage.folder or f"{stack.team}/{stack.environment}"
        return StorePlan(f"file://{mount}/{folder}", StoragePlan(stack.storage.name, mount))
    bucket = stack.bucket
    variables: dict[str, EnvValue | None] = {
        "AWS_ENDPOINT_URL_S3": bucket.endpoint,
        "AWS_REGION": bucket.region,
        "AWS_ACCESS_KEY_ID": bucket.access_key,
        "AWS_SECRET_ACCESS_KEY": bucket.secret_key,
    }
    given = {name: value for name, value in variables.items() if value is not None}
    return StorePlan(f"s3://{stack.bucket_name}", None, given)


def _job(stack: OpenPaiStack, spec: OpenPaiJob, resolved: ResolvedJob, job: JobPlan) -> OpenPaiJobPlan:
    # Without the launcher tasks find the others by variables that exist only where all of them start together.
    gang = resolved.framework.gang or spec.start != "launcher"
    counts = [_count(spec.roles[role.name]) for role in job.roles]
    services = {name for name, row in resolved.framework.roles.items() if row.service}
    return extend(
        OpenPaiJobPlan,
        job,
        start=spec.start,
        priority=spec.job_priority_class,
        gang=gang or not any(counts),
        retry_count=max(counts, default=0) if gang else 0,
        task_roles={
            role.called: TaskRolePlan(
                retry_count=0 if gang else _count(spec.roles[role.name]),
                min_failed=spec.roles[role.name].completion.min_failed,
                min_succeeded=_enough(spec, role.name, services),
                sku=stack.skus[spec.sku_name(role.name)],
                ports={label.replace("-", "_"): spec.roles[role.name].ports.get(label, 1) for label in role.reserved},
            )
            for role in job.roles
        },
        image_auth=spec.image_auth,
        plugins=spec.plugins,
        prerequisites=spec.prerequisites,
        parameters=spec.parameters,
        runs={key: _run(run, _commands(resolved, key)) for key, run in job.runs.items()},
    )


def _count(role: Role) -> int:
    return ENDLESS if role.retry.count < 0 else role.retry.count


def _enough(spec: OpenPaiJob, role: str, services: set[str]) -> int:
    """How many successes of a role complete the whole job, at once. -1: all tasks have to end.

    The launcher ends services itself. Nobody ends those that a plain command started, but OpenPAI, when the main
    role is complete.
    """
    wanted = spec.roles[role].completion.min_succeeded
    if wanted is not None and wanted > 0:
        return wanted
    leads = spec.start == "plain" and services & set(spec.roles) and role not in services
    return spec.roles[role].replicas if leads else -1


def _commands(job: ResolvedJob, run: str) -> Mapping[str, list[str]]:
    """By the roles' names on the nodes: a command for bash as it is written, and the run's arguments."""
    spec = job.spec
    if not spec.by_shell:
        return {}
    args = spec.runs[run].args
    return {job.called(name): [role.command or spec.command, *args] for name, role in spec.roles.items()}


def _run(run: RunPlan, commands: Mapping[str, list[str]]) -> RunPlan:
    """OpenPAI tries again, so the launcher must not."""
    return replace(run, nodes=tuple(_node(node, commands.get(node.role)) for node in run.nodes))


def _node(node: NodePlan, command: list[str] | None) -> NodePlan:
    own = {"command": command} if command else {}
    return replace(node, launch={**node.launch, "retry": {"count": 0}, **own})
