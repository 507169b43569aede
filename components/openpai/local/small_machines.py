# SPDX-License-Identifier: Apache-2.0
"""Jobs of an OpenPAI cluster, small enough for this machine. What stands in is said, for nothing of it was proven."""

from __future__ import annotations

from typing import Any

from components.openpai.plan import OpenPaiPlan
from components.plan.model import JobPlan, Plan
from components.plan.naming import expand
from components.platform.rehearsal import RehearsedConfig

SKUS = "trainyard:skus"
PROCESSES, BACKEND = "processes", "backend"
_NO_GPUS = "GPUs: there are none here; it trains on processors"
_NCCL = "NCCL: there is no GPU here; gloo carries the tensors"
_SMALL = {"gpus": 0, "cpus": 1, "memoryGb": 4, "shmMb": 1024}
# Cells and their types are the cluster's own scheduler's, which the local cluster has not.
_HIVED = ("sku", "pinnedCellId")


def small_tasks(made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
    """`trainyard.rehearsal.mapping.Machines`."""
    job = plan.jobs[name]
    _shapes(made, name, job, entry)
    _options(made, name, job, entry)
    address = plan.registry_address if isinstance(plan, OpenPaiPlan) else ""
    image = expand(job.image, {"registry": address})
    made.differences.append(f"job {name}: {image} is not pulled: an environment of this machine stands in")


def _shapes(made: RehearsedConfig, name: str, job: JobPlan, entry: dict[str, Any]) -> None:
    """SKUs of its own, because other jobs may name the same ones."""
    own = {role: row for role, row in entry["roles"].items() if isinstance(row, dict) and row.get("shape")}
    names = dict.fromkeys([job.shape.name, *(row["shape"] for row in own.values())])
    written = {sku: made.config.get(SKUS, {}).get(sku) or {} for sku in names}
    called = {sku: f"rehearsal-{name}" + (f"-{sku}" if sku != job.shape.name else "") for sku in names}
    for sku, row in written.items():
        small = {key: min(value, _SMALL[key]) if key in _SMALL else value for key, value in row.items()}
        if small == row:
            called[sku] = sku
            continue
        made.config[SKUS] = {**made.config[SKUS], called[sku]: {key: small[key] for key in small if key not in _HIVED}}
        made.differences.append(f"job {name}: a share of this machine stands in for each {sku}")
    entry["shape"] = called[job.shape.name]
    entry["roles"] = {**entry["roles"], **{role: {**row, "shape": called[row["shape"]]} for role, row in own.items()}}
    if any(row.get("gpus") for row in written.values()):
        made.not_rehearsed.setdefault(name, []).append(_NO_GPUS)


def _options(made: RehearsedConfig, name: str, job: JobPlan, entry: dict[str, Any]) -> None:
    options = dict(entry.get("options") or {})
    if options.get(BACKEND) == "nccl":
        made.not_rehearsed.setdefault(name, []).append(_NCCL)
        options[BACKEND] = "gloo"
    many = options.get(PROCESSES)
    if isinstance(many, int) and many > 1:
        options[PROCESSES] = 1
        made.differences.append(f"job {name}: one process for each task, in place of {many}")
    if options:
        entry["options"] = options
