# SPDX-License-Identifier: Apache-2.0
"""Maps a stack's configuration to a rehearsal: the same plan on small machines, and a list of the differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from components.plan.model import JobPlan, Plan
from components.platform.rehearsal import RehearsedConfig

JOBS, ACCESS, NETWORK = "trainyard:jobs", "trainyard:access", "trainyard:network"
# Long enough for the slowest framework to start here, and short enough that a hanging run is noticed.
RUNTIME_MINUTES = 30
# Options that limit how many nodes a job has. They must not exceed the nodes that are left.
NODE_BOUNDS = ("minNodes", "maxNodes")
# Shrinks a job to this machine and notes the differences. Arguments: the configuration, the job, the plan, its entry.
Machines = Callable[[RehearsedConfig, str, Plan, dict[str, Any]], None]


def map_config(
    written: Mapping[str, Any], plan: Plan, most_nodes: int | None, programs: Mapping[str, str],
    machines: Machines,
) -> RehearsedConfig:  # fmt: skip
    """Maps the team's configuration. `programs` are folders of built-in code that replaces a job's own, by job."""
    made = RehearsedConfig(deepcopy(dict(written)))
    for name, job in plan.jobs.items():
        entry = made.config[JOBS][name]
        # A rehearsal has no older resources to rename, and its report uses the names of the plan.
        for item in (entry, *entry["roles"].values(), *(entry.get("runs") or {}).values()):
            if isinstance(item, dict):
                item.pop("was", None)
        machines(made, name, plan, entry)
        _reduce_nodes(made, name, job, entry, most_nodes)
        options = entry.get("options") or {}
        if options.get("backend") == "nccl":
            entry["options"] = {**options, "backend": "gloo"}
            reasons = made.not_rehearsed.setdefault(name, [])
            reasons += [] if reasons else ["NCCL: there is no GPU here; gloo carries the tensors"]
        if name in programs:
            entry["code"] = programs[name]
            entry["command"] = "train.py"
            for role in entry["roles"].values():
                if isinstance(role, dict):
                    role.pop("command", None)
            for run in entry.get("runs", {}).values():
                (run or {}).pop("args", None)
            made.differences.append(f"job {name}: a small built-in program trains in place of the team's code")
        if job.inputs:
            buckets = ", ".join(dict.fromkeys(item.bucket or plan.bucket.name for item in job.inputs))
            made.differences.append(f"job {name}: the input data of {buckets} is not here, so its mounts are empty")
        # One connection of a preflight would make a rule look needed, and a few bytes a node look busy.
        entry["preflight"] = "off"
        entry["maximumRuntimeMinutes"] = min(job.maximum_runtime_minutes, RUNTIME_MINUTES)
    # Everything that a rehearsal makes is removed afterwards.
    for key in ("trainyard:bucket", "trainyard:registry"):
        concern = made.config.get(key)
        if isinstance(concern, dict) and "existing" not in concern:
            concern["keep"] = False
    if (made.config.get("trainyard:bucket") or {}).pop("key", None) is not None:
        made.differences.append("the bucket's own key: the local cloud has no keys, so it is left out")
    # The local cloud has only the default domain.
    users = (made.config.get(ACCESS) or {}).get("users") or {}
    for key in ("group", "dynamicGroup"):
        domain, slash, rest = str(users.get(key) or "").partition("/")
        if slash:
            users[key] = rest
            made.differences.append(
                f"{key} {rest} of the domain {domain}: a group of the default domain is used instead"
            )
    return made


def without_runs(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same stack without runs: the rehearsal starts them itself."""
    copied = deepcopy(dict(config))
    for job in copied.get(JOBS, {}).values():
        job["runs"] = {}
    return copied


def stand_in_stack(plan: Plan, written: Mapping[str, Any], place: Sequence[str]) -> dict[str, Any]:
    """The configuration of a small stand-in for the stack that this one uses, whose file is not here.

    `place`: the platform's keys that say where a stack is.
    """
    own = ("trainyard:platform", *place, "trainyard:frameworks")
    used = sorted({job.framework for job in plan.jobs.values()})
    return {
        **{key: deepcopy(written[key]) for key in own if key in written},
        "trainyard:team": "platform",
        "trainyard:environment": "stand-in",
        ACCESS: {"users": {"group": "scientists"}},
        NETWORK: {"frameworks": used} if used else {},
    }


def _reduce_nodes(made: RehearsedConfig, name: str, job: JobPlan, entry: dict[str, Any], most: int | None) -> None:
    """Removes nodes one at a time, always from the largest role. Every role keeps at least one."""
    replicas = {role.name: role.replicas for role in job.roles}
    if most is None or job.nodes <= most:
        return
    while sum(replicas.values()) > most and max(replicas.values()) > 1:
        largest = max(replicas, key=lambda role: replicas[role])
        replicas[largest] -= 1
    for role, count in replicas.items():
        declared = entry["roles"].get(role)
        if not isinstance(declared, Mapping):
            entry["roles"][role] = count
            continue
        completion = dict(declared.get("completion") or {})
        completion |= {key: count for key in ("minSucceeded", "minFailed") if completion.get(key, 0) > count}
        entry["roles"][role] = {**declared, "replicas": count, **({"completion": completion} if completion else {})}
    nodes, options = sum(replicas.values()), entry.get("options") or {}
    if bounds := {key: nodes for key in NODE_BOUNDS if options.get(key, 0) > nodes}:
        entry["options"] = {**options, **bounds}
    made.differences.append(f"job {name}: {nodes} of its {job.nodes} nodes")
