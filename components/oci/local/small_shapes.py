# SPDX-License-Identifier: Apache-2.0
"""Shapes that this machine can stand in for, in place of those that a stack file names."""

from __future__ import annotations

from typing import Any

from components.plan.model import JobPlan, Plan
from components.platform.rehearsal import RehearsedConfig

# A shape that every local machine can stand in for.
SMALL_SHAPE = {"name": "VM.Standard.E4.Flex", "ocpus": 1, "memoryGb": 8}
# Frameworks whose tensors travel by NCCL where there are GPUs.
_BY_NCCL = frozenset({"accelerate", "horovod", "lightning", "pytorch", "torchrun"})


def small_shapes(made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
    """`trainyard.rehearsal.mapping.Machines`."""
    _shape(made, name, plan.jobs[name], entry)
    _image(made, name, plan, entry)


def _shape(made: RehearsedConfig, name: str, job: JobPlan, entry: dict[str, Any]) -> None:
    if job.shape.name == SMALL_SHAPE["name"] and (job.shape.ocpus or 1) <= 1:
        return
    entry["shape"] = dict(SMALL_SHAPE)
    if "GPU" in job.shape.name.upper():
        made.differences.append(f"job {name}: {job.shape.name} has GPUs; here it trains on processors")
        if job.framework in _BY_NCCL:
            made.not_rehearsed.setdefault(name, []).append("NCCL: there is no GPU here; gloo carries the tensors")
    else:
        made.differences.append(f"job {name}: a share of this machine stands in for {job.shape.name}")


def _image(made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
    """Gives a job an image of its own if its image is in another registry, or shared by jobs of other frameworks."""
    job = plan.jobs[name]
    shared = {other.framework for other in plan.jobs.values() if other.image == job.image} != {job.framework}
    if not job.image_is_ours:
        made.differences.append(
            f"job {name}: {job.image} is not pulled: an image of the stack's own repository stands in"
        )
    if shared or not job.image_is_ours:
        entry["image"] = f"${{registry}}:rehearsal-{name}"
