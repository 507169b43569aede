# SPDX-License-Identifier: Apache-2.0
"""What `trainyard plan` says in OpenPAI's words."""

from __future__ import annotations

from collections.abc import Iterator

from components.openpai.lower import ENDLESS
from components.openpai.plan import OpenPaiJobPlan, OpenPaiPlan
from components.openpai.stack import Sku
from components.plan.platform import Row, Words
from schemas.names import plural

_STARTS = {
    "launcher": "by trainyard's launcher, which the image has",
    "plain": "by the command itself, with rank, addresses and ports from OpenPAI's variables",
    "as-is": "by bash, which runs the command as it is written",
}


def words(plan: OpenPaiPlan) -> Words:
    cluster, storage = plan.cluster, plan.store.storage
    seen = f"{storage.name}, at {storage.mount}" if storage else "none"
    return Words(
        place=[("cluster", cluster.uri), ("virtual cluster", cluster.virtual_cluster)],
        principals=[("users", f"{cluster.user}, by a token"), ("runs", "nobody: a task has what its job brings")],
        network=[("network", "the cluster's: tasks share the network of their hosts, and OpenPAI keeps ports free")],
        storage=[("storage", seen), ("results", plan.store.uri)],
        jobs={name: tuple(_job(job)) for name, job in plan.jobs.items()},
        without=frozenset(
            {"block storage", *(("bucket",) if storage else ()), *(() if plan.registry_address else ("registry",))}
        ),
    )


def _job(job: OpenPaiJobPlan) -> Iterator[Row]:
    skus = {name: _sku(role.sku) for name, role in job.task_roles.items()}
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
            yield f"retries of {name}", f"{_times(role.retry_count)}, each task alone"
    yield "retries", f"{_times(job.retry_count)}, all tasks together" if job.retry_count else "only transient failures"
    if job.prerequisites:
        yield "prerequisites", ", ".join(f"{one.type} {one.name}" for one in job.prerequisites)
    if job.plugins:
        yield "plugins", ", ".join(one.plugin for one in job.plugins)
    if job.parameters:
        yield "parameters", ", ".join(f"{name}={value}" for name, value in job.parameters.items())


def _sku(sku: Sku) -> str:
    shared = f", {sku.shm_mb} MB of it shared memory" if sku.shm_mb else ""
    kind = f", of {sku.sku}" if sku.sku else f", in the cell {sku.pinned_cell_id}" if sku.pinned_cell_id else ""
    devices = ", InfiniBand" if sku.infiniband else ""
    size = f"{plural(sku.gpus, 'GPU')}, {plural(sku.cpus, 'processor')}, {sku.memory_gb:g} GB"
    return f"{size}{shared}{devices}{kind}"


def _times(count: int) -> str:
    return "without limit" if count == ENDLESS else plural(count, "time")
