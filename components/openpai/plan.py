# SPDX-License-Identifier: Apache-2.0
"""The Plan of OpenPAI: what all platforms have, and what only OpenPAI has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from catalog.tables import table
from components.openpai.stack import ImageAuth, OpenPaiJob, OpenPaiStack, Plugin, Prerequisite, Priority, Sku, Start
from components.plan.build import grants_of_rows
from components.plan.model import JobPlan, Plan, RunPlan, extend_plan, job_as, plan_as
from components.plan.platform import PlannedNode, Planning, Rendezvous, Row, Words
from components.plan.ports import ResolvedJob
from schemas.model import EnvValue, Role, Secret
from schemas.name_suggestions import count_noun

# The largest number of retries in the protocol (32 bits), which stands for no limit.
ENDLESS = 2**31 - 1
_STARTS = {
    "launcher": "by trainyard's launcher, which the image has",
    "plain": "by the command itself, with rank, addresses and ports from OpenPAI's variables",
    "as-is": "by bash, which runs the command unchanged",
}


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    uri: str
    user: str
    token: Secret | None
    virtual_cluster: str
    certificate: str | None


@dataclass(frozen=True, slots=True)
class StoragePlan:
    name: str
    mount: str


@dataclass(frozen=True, slots=True)
class StorePlan:
    """The place of checkpoints and results. `uri`: the value of `${bucket}`. Tasks find a bucket by variables."""

    uri: str
    storage: StoragePlan | None = None
    variables: Mapping[str, str | Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskRolePlan:
    """A task role: the resources of its tasks, retries, completion, and ports (label -> how many).

    `sku_name`: of the row of `trainyard:skus`, which a team's prices name."""

    retry_count: int
    min_failed: int
    min_succeeded: int
    sku: Sku
    ports: Mapping[str, int]
    sku_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPaiJobPlan(JobPlan):
    """`gang`: no task can continue without the others, so OpenPAI starts and retries all of them together."""

    start: Start
    priority: Priority | None
    gang: bool
    retry_count: int
    task_roles: Mapping[str, TaskRolePlan]
    image_auth: ImageAuth | None
    plugins: tuple[Plugin, ...]
    prerequisites: tuple[Prerequisite, ...]
    parameters: Mapping[str, str]

    @property
    def by_shell(self) -> bool:
        return self.start == "as-is"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPaiPlan(Plan):
    cluster: ClusterPlan
    store: StorePlan
    registry_address: str
    jobs: Mapping[str, OpenPaiJobPlan] = field(default_factory=dict)


def openpai_plan(plan: Plan) -> OpenPaiPlan:
    return plan_as(OpenPaiPlan, plan)


def openpai_job(job: JobPlan) -> OpenPaiJobPlan:
    return job_as(OpenPaiJobPlan, job)


def lower_openpai(stack: OpenPaiStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> OpenPaiPlan:
    cluster, store = stack.cluster, _lower_store(stack)
    targets = {
        "virtual-cluster": (cluster.virtual_cluster,),
        "storage": (store.storage.name,) if store.storage else (),
        "bucket": () if store.storage else (plan.bucket.name,),
    }
    own = tuple(grants_of_rows(table("openpai")["grant"], frozenset(), targets))
    return extend_plan(
        OpenPaiPlan,
        plan,
        access=replace(plan.access, grants=own),
        cluster=ClusterPlan(
            cluster.uri.rstrip("/"), cluster.user, cluster.token, cluster.virtual_cluster, cluster.certificate
        ),
        store=store,
        registry_address=stack.registry.existing or "",
        jobs={name: _lower_job(stack, stack.jobs[name], jobs[name], job) for name, job in plan.jobs.items()},
    )


def _lower_store(stack: OpenPaiStack) -> StorePlan:
    """A storage is preferred to a bucket: all tasks have its folder, and it needs no keys."""
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


def _lower_job(stack: OpenPaiStack, spec: OpenPaiJob, resolved: ResolvedJob, job: JobPlan) -> OpenPaiJobPlan:
    # Without the launcher, tasks find one another by variables that exist only if all tasks start together.
    gang = resolved.framework.gang or spec.start != "launcher"
    counts = [_retry_count(spec.roles[role.name]) for role in job.roles]
    services = {name for name, row in resolved.framework.roles.items() if row.service}
    return extend_plan(
        OpenPaiJobPlan,
        job,
        start=spec.start,
        priority=spec.job_priority_class,
        gang=gang or not any(counts),
        retry_count=max(counts, default=0) if gang else 0,
        task_roles={
            role.called: TaskRolePlan(
                retry_count=0 if gang else _retry_count(spec.roles[role.name]),
                min_failed=spec.roles[role.name].completion.min_failed,
                min_succeeded=_tasks_that_suffice(spec, role.name, services),
                sku=stack.skus[spec.sku_name(role.name)],
                ports={label.replace("-", "_"): spec.roles[role.name].ports.get(label, 1) for label in role.reserved},
                sku_name=spec.sku_name(role.name),
            )
            for role in job.roles
        },
        image_auth=spec.image_auth,
        plugins=spec.plugins,
        prerequisites=spec.prerequisites,
        parameters=spec.parameters,
        runs={key: _run_without_retries(run, resolved, key) for key, run in job.runs.items()},
    )


def _retry_count(role: Role) -> int:
    return ENDLESS if role.retry.count < 0 else role.retry.count


def _tasks_that_suffice(spec: OpenPaiJob, role: str, services: set[str]) -> int:
    """How many successful tasks of a role complete the whole job. -1: all tasks have to end.

    The launcher ends services itself. With plain commands, only OpenPAI can end them, when the main role is complete.
    """
    wanted = spec.roles[role].completion.min_succeeded
    if wanted is not None and wanted > 0:
        return wanted
    leads = spec.start == "plain" and services & set(spec.roles) and role not in services
    return spec.roles[role].replicas if leads else -1


def _run_without_retries(run: RunPlan, job: ResolvedJob, key: str) -> RunPlan:
    """OpenPAI retries, so the launcher must not. Bash gets its command as it is written, with the run's arguments."""
    spec, commands = job.spec, dict[str, list[str | None]]()
    if spec.by_shell:
        args = spec.runs[key].args
        commands = {job.called(name): [role.command or spec.command, *args] for name, role in spec.roles.items()}
    nodes = []
    for node in run.nodes:
        own = {"command": commands[node.role]} if node.role in commands else {}
        nodes.append(replace(node, launch={**node.launch, "retry": {"count": 0}, **own}))
    return replace(run, nodes=tuple(nodes))


def openpai_words(plan: OpenPaiPlan) -> Words:
    cluster, storage = plan.cluster, plan.store.storage
    seen = f"{storage.name}, at {storage.mount}" if storage else "none"
    return Words(
        place=[("cluster", cluster.uri), ("virtual cluster", cluster.virtual_cluster)],
        principals=[("users", f"{cluster.user}, by a token"), ("runs", "none: a task has only what its job contains")],
        network=[("network", "the cluster's: tasks share the network of their hosts, and OpenPAI keeps ports free")],
        storage=[("storage", seen), ("results", plan.store.uri)],
        jobs={name: tuple(_openpai_job_words(job)) for name, job in plan.jobs.items()},
        without=frozenset(
            {"block storage", *(("bucket",) if storage else ()), *(() if plan.registry_address else ("registry",))}
        ),
    )


def _openpai_job_words(job: OpenPaiJobPlan) -> Iterator[Row]:
    skus = {name: _sku_words(role.sku) for name, role in job.task_roles.items()}
    if len(set(skus.values())) == 1:
        yield "each task", next(iter(skus.values()))
    else:
        yield from ((f"each task of {name}", text) for name, text in skus.items())
    if job.priority:
        yield "priority", job.priority
    yield "starts", _STARTS[job.start]
    labels = {label: None for role in job.task_roles.values() for label in role.ports}
    yield "ports", f"OpenPAI reserves {', '.join(labels)}" if labels else "none to reserve"
    for name, role in job.task_roles.items():
        if role.retry_count:
            yield f"retries of {name}", f"{_times_words(role.retry_count)}, each task alone"
    yield (
        "retries",
        f"{_times_words(job.retry_count)}, all tasks together" if job.retry_count else "only transient failures",
    )
    if job.prerequisites:
        yield "prerequisites", ", ".join(f"{one.type} {one.name}" for one in job.prerequisites)
    if job.plugins:
        yield "plugins", ", ".join(one.plugin for one in job.plugins)
    if job.parameters:
        yield "parameters", ", ".join(f"{name}={value}" for name, value in job.parameters.items())


def _sku_words(sku: Sku) -> str:
    shared = f", {sku.shm_mb} MB of it shared memory" if sku.shm_mb else ""
    kind = f", of {sku.sku}" if sku.sku else f", in the cell {sku.pinned_cell_id}" if sku.pinned_cell_id else ""
    devices = ", InfiniBand" if sku.infiniband else ""
    size = f"{count_noun(sku.gpus, 'GPU')}, {count_noun(sku.cpus, 'processor')}, {sku.memory_gb:g} GB"
    return f"{size}{shared}{devices}{kind}"


def _times_words(count: int) -> str:
    return "without limit" if count == ENDLESS else count_noun(count, "time")


def _planned_nodes(stack: OpenPaiStack, job: ResolvedJob) -> Iterator[PlannedNode]:
    """What each task gets. Which kind of accelerator the cluster calls a GPU is not known."""
    if isinstance(job.spec, OpenPaiJob):
        for role in job.roles:
            sku = stack.skus[job.spec.sku_name(role)]
            yield PlannedNode((job.called(role),), sku.gpus, shm_mb=sku.shm_mb or 0)


PLANNING = Planning(
    way_to_services="over the cluster's network",
    lower=lower_openpai,
    rendezvous=lambda layout: Rendezvous("openpai", "addresses and ports are those that OpenPAI tells each task"),
    words=openpai_words,
    planned_nodes=_planned_nodes,
)
