# SPDX-License-Identifier: Apache-2.0
"""Jobs of an OpenPAI cluster, small enough for this machine. What stands in is said, for nothing of it was proven."""

from __future__ import annotations

from typing import Any

from components.openpai.plan import OpenPaiPlan
from components.plan.model import JobPlan, Plan
from components.plan.naming import expand
from rehearsal.mapping import RehearsedConfig

SKUS = "trainyard:skus"
PROCESSES, BACKEND = "processes", "backend"
_NO_GPUS = "GPUs: there are none here; it trains on processors"
_NCCL = "NCCL: there is no GPU here; gloo carries the tensors"
_SMALL = {"gpus": 0, "cpus": 1, "memoryGb": 4}


def small_tasks(made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
    """`rehearsal.mapping.Machines`."""
    job = plan.jobs[name]
    _shape(made, name, job, entry)
    _options(made, name, job, entry)
    address = plan.registry_address if isinstance(plan, OpenPaiPlan) else ""
    image = expand(job.image, {"registry": address})
    made.differences.append(f"job {name}: {image} is not pulled: an environment of this machine stands in")


def _shape(made: RehearsedConfig, name: str, job: JobPlan, entry: dict[str, Any]) -> None:
    """A SKU of its own, because other jobs may name the same one."""
    written = made.config.get(SKUS, {}).get(job.shape.name) or {}
    small = {key: min(value, _SMALL[key]) if key in _SMALL else value for key, value in written.items()}
    if small == written:
        return
    # A type of cell is the cluster's own scheduler's, which the local cluster has not.
    small.pop("sku", None)
    made.config[SKUS] = {**made.config[SKUS], f"rehearsal-{name}": small}
    entry["shape"] = f"rehearsal-{name}"
    made.differences.append(f"job {name}: a share of this machine stands in for each {job.shape.name}")
    if written.get("gpus"):
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
