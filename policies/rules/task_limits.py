# SPDX-License-Identifier: Apache-2.0
"""A task without limits takes what its neighbours on the machine need, and the scheduler cannot count it."""

from typing import Any

from policies.openpai_jobs import RUN, roles_of, sample_openpai_run
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

# The smallest valid limits. 0 accelerators is a limit too.
LEAST = {"cpu": 1, "memoryMB": 1, "gpu": 0}


def judge_task_limits(resource: JudgedResource) -> PolicyVerdict:
    return verdict_on_every(judge_role_limits, roles_of(resource).items())


def judge_role_limits(role: tuple[str, Any]) -> PolicyVerdict:
    name, properties = role
    resources = properties.get("resourcePerInstance") or {}
    missing = [key for key, least in LEAST.items() if not is_limit(resources.get(key), least)]
    return fail_because(f"the task role `{name}` has no limit of {', '.join(missing)}") if missing else PASS


def is_limit(value: Any, least: int) -> bool:
    return value is not None and float(value) >= least


def _run_with_resources(**resources: Any) -> JudgedResource:
    return sample_openpai_run(role={"resourcePerInstance": resources})


RULE = PolicyRule(
    id="task-limits",
    level="mandatory",
    asks="Every task on OpenPAI has limits: processors, memory and accelerators.",
    remedy="set cpu, memoryMB and gpu of resourcePerInstance (in the stack file: a row of `trainyard:skus`, named by"
    " `shape`)",
    types=(RUN,),
    judge=judge_task_limits,
    passes={
        "all three": sample_openpai_run(),
        "a run on another platform": JudgedResource(RUN, {"platform": "oci"}),
        "no accelerators": _run_with_resources(cpu=4.0, memoryMB=8192.0, gpu=0.0),
    },
    fails={
        "none": sample_openpai_run(role={"resourcePerInstance": None}),
        "no memory": _run_with_resources(cpu=4, gpu=1),
        "no processors": _run_with_resources(cpu=0, memoryMB=8192, gpu=1),
        "accelerators left open": _run_with_resources(cpu=4, memoryMB=8192),
    },
    unknown={
        "decided elsewhere": JudgedResource(RUN, {"protocol": Unknown("protocol")}),
        "memory of another resource": _run_with_resources(cpu=4, memoryMB=Unknown("memoryMB"), gpu=1),
    },
)
