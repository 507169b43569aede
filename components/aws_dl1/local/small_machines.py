# SPDX-License-Identifier: Apache-2.0
"""Jobs of DL1 machines, small enough for this one. What stands in is said, for nothing of it was proven."""

from __future__ import annotations

from typing import Any

from components.plan.model import Plan
from components.platform.rehearsal import RehearsedConfig

PROCESSES = "processes"
NOT_HERE = (
    "HCCL on Gaudi: there is none here; gloo carries the tensors between processors",
    "EFA: one virtual interface stands in for those of a machine; the security group's rules are in force on it",
    "docker with the runtime habana, and the container image: an environment of this machine stands in",
    "the machine image with its drivers: a namespace that carries out the user data stands in",
)


def small_machines(made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
    """`trainyard.rehearsal.mapping.Machines`. Machines stay as written: the local cloud has that type."""
    job = plan.jobs[name]
    made.not_rehearsed.setdefault(name, []).extend(NOT_HERE)
    made.differences.append(f"job {name}: a share of this machine stands in for each {job.shape.name}")
    options = entry.get("options") or {}
    many = options.get(PROCESSES)
    if isinstance(many, int) and many > 1:
        entry["options"] = {**options, PROCESSES: 1}
        made.differences.append(f"job {name}: one process on each machine, for {many} accelerators")
