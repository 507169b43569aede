# SPDX-License-Identifier: Apache-2.0
"""A typing mistake in `replicas` or in a runtime can cost thousands. A ceiling by environment stops it in time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from components.values.resource_types import TypesWith
from policies.jobs import TYPES, PolicyJob, accelerators_at_once, dollars_at_most, jobs_of, nodes_at_once
from policies.openpai_jobs import RUN
from policies.rule import (
    PASS,
    JudgedResource,
    JudgedStack,
    PolicyVerdict,
    StackRule,
    StackVerdict,
    Unknown,
    fail_because,
    verdict_on_every,
)
from policies.settings import in_environment

JOB, TARGET = "oci:DataScience/job:Job", "oci:DataScience/computeTarget:ComputeTarget"
# Ceiling -> how to count the use of a job, and the message.
Counted = Callable[[PolicyJob, Mapping[str, Any], bool], float]
COUNTED: Mapping[str, tuple[Counted, str]] = {
    "nodes": (lambda job, *_: nodes_at_once(job), "{:g} nodes at once; the ceiling is {:g}"),
    "gpus": (lambda job, *_: accelerators_at_once(job), "{:g} accelerators at once; the ceiling is {:g}"),
    "usd": (dollars_at_most, "up to $ {:,.2f} in all its runs; the ceiling is $ {:,.2f}"),
}
NUMBER = {"type": "number", "minimum": 0}
CEILINGS = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "additionalProperties": False,
        "properties": dict.fromkeys(COUNTED, NUMBER),
    },
}
PRICE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        **dict.fromkeys(("usd_per_hour", "usd_per_ocpu_hour", "usd_per_gib_hour"), NUMBER),
        "source": {"type": "string"},
    },
}


def judge_budget(stack: JudgedStack) -> Iterator[StackVerdict]:
    prices, targets, jobs = stack.settings.get("prices") or {}, bool(stack.of(TARGET)), jobs_of(stack)
    for setting, judged in (("ceilings", [(job,) for job in jobs]), ("stackCeilings", [jobs] if jobs else [])):
        by_environment = stack.settings.get(setting) or {}
        ceilings = in_environment(by_environment, stack.environment)
        for some in judged if by_environment else ():
            if ceilings is None:
                # Otherwise another name of the environment would be the way around.
                reason = f"nothing says what the environment `{stack.environment}` may take"
                yield some[0].resource, fail_because(reason)
            else:
                yield some[0].resource, judge_jobs(some, ceilings, prices, targets)


def judge_jobs(
    jobs: Sequence[PolicyJob], ceilings: Mapping[str, float], prices: Mapping[str, Any], targets: bool
) -> PolicyVerdict:
    who = f"the job `{jobs[0].name}` takes" if len(jobs) == 1 else f"the {len(jobs)} jobs of the stack take"

    def judge_ceiling(ceiling: str) -> PolicyVerdict:
        count, words = COUNTED[ceiling]
        taken, most = sum(float(count(job, prices, targets)) for job in jobs), float(ceilings[ceiling])
        return fail_because(f"{who} {words.format(taken, most)}") if taken > most else PASS

    return verdict_on_every(judge_ceiling, [ceiling for ceiling in COUNTED if ceiling in ceilings])


def _stack_with_ceilings(
    *resources: JudgedResource, environment: str = "dev", prices: Any = None, **ceilings: float
) -> JudgedStack:
    settings = {"ceilings": {"dev": ceilings}, "prices": prices or {}}
    return JudgedStack(resources, environment, settings)


def _run_of_nodes(
    nodes: int = 4, minutes: Any = 60, retries: int = 0, job: str = "resnet", **more: Any
) -> JudgedResource:
    environment_of_node = {"TRAINYARD_LAUNCH": json.dumps({"retry": {"count": retries}, "ports": {}})}
    listed = [{"name": f"worker-{number}", "environment": environment_of_node} for number in range(nodes)]
    inputs = {"nodes": listed, "maximumRuntimeMinutes": minutes, "tags": {"job": job}, **more}
    return JudgedResource(RUN, {"platform": "oci", **inputs}, f"{job}/base")


def _job_with_shape(shape: Any = "VM.GPU.A10.2", size: Any = None, disk: int = 0, **tags: str) -> JudgedResource:
    where = {"shapeName": shape, "jobShapeConfigDetails": size, "blockStorageSizeInGbs": disk}
    return _job_on(where, **tags)


def _job_on(where: Mapping[str, Any], **tags: str) -> JudgedResource:
    return JudgedResource(
        JOB,
        {
            "jobInfrastructureConfigurationDetails": where,
            "jobConfigurationDetails": {"maximumRuntimeInMinutes": "60"},
            "freeformTags": {"job": "resnet", **tags},
        },
        "resnet",
    )


FLEX = "VM.Standard.E5.Flex"
ON_TARGET = _job_on({"computeTargetId": "ocid1.datasciencecomputetarget.oc1..a"})


def _openpai_run(instances: int, retries: int = 0) -> JudgedResource:
    role = {"instances": instances, "resourcePerInstance": {"gpu": 4}}
    protocol = {"taskRoles": {"worker": role}, "jobRetryCount": retries}
    return _run_of_nodes(instances, platform="openpai", protocol=protocol)


OPENPAI_PRICE = {str(_openpai_run(1).properties["platform"]): 1}


def _aws_machines(count: int) -> tuple[JudgedResource, ...]:
    tags = {"tags": {"job": "resnet"}}
    template = JudgedResource(
        "aws:ec2/launchTemplate:LaunchTemplate", {"instanceType": "dl1.24xlarge", **tags}, "resnet"
    )
    numbers = range(count)
    return (template, *(JudgedResource("aws:ec2/instance:Instance", tags, f"resnet/worker-{n}") for n in numbers))


RULE = StackRule(
    id="budget",
    level="mandatory",
    asks="No job, and no stack, is above its environment's ceiling of nodes, accelerators or dollars.",
    remedy="take fewer nodes or runs, a smaller shape, a shorter `maximumRuntimeMinutes` or fewer retries; or raise the"
    " ceiling in the pack's configuration (`budget`: `ceilings`)",
    types=TypesWith(lambda row: row.token in TYPES, {TARGET: True}),
    judge=judge_budget,
    settings={
        "ceilings": {
            "description": "By environment (`*`: all others), the most that a job takes with all its runs: `nodes` and"
            " `gpus` at once, `usd` in all. `{}`: no ceiling. An environment that is not here may take nothing.",
            **CEILINGS,
        },
        "stackCeilings": {"description": "Likewise, the most that all jobs of a stack take together.", **CEILINGS},
        "prices": {
            "description": "US dollars an hour of a node by shape, before the catalog's, or the rows of a review's"
            " `--prices`; `openpai`: of one there; `compute target`: of one that is not the stack's own.",
            "type": "object",
            "additionalProperties": {"anyOf": [NUMBER, PRICE]},
        },
    },
    passes={
        "no ceiling": JudgedStack((_job_with_shape(), _run_of_nodes(400)), "dev"),
        "an environment without a ceiling": JudgedStack(
            (_job_with_shape(), _run_of_nodes(400)), "prod", {"ceilings": {"dev": {"nodes": 1}, "prod": {}}}
        ),
        "jobs within the stack's ceiling": JudgedStack(
            (_run_of_nodes(4), _run_of_nodes(4, job="bert")), "dev", {"stackCeilings": {"dev": {"nodes": 8}}}
        ),
        "as many as the ceiling": _stack_with_ceilings(_job_with_shape(), _run_of_nodes(4), nodes=4, gpus=8, usd=16),
        "machines that runs share": _stack_with_ceilings(
            *_aws_machines(2), _run_of_nodes(2), _run_of_nodes(2), nodes=2, gpus=16
        ),
        "a price of the team's own": _stack_with_ceilings(
            _job_with_shape(), _run_of_nodes(4), usd=4, prices={"VM.GPU.A10.2": 1}
        ),
        "retries, which the maximum runtime includes": _stack_with_ceilings(
            _job_with_shape(), _run_of_nodes(4, retries=2), usd=16
        ),
        "a job without runs": _stack_with_ceilings(_job_with_shape(launch="nodes=4 ports=29400"), nodes=4, usd=16),
        "a flexible shape": _stack_with_ceilings(
            _job_with_shape(FLEX, {"ocpus": 10, "memoryInGbs": 50}), _run_of_nodes(1), usd=0.4
        ),
        "a compute target of the stack": _stack_with_ceilings(
            ON_TARGET, JudgedResource(TARGET, {}, "pool"), _run_of_nodes(1), usd=1
        ),
        "a job of OpenPAI": _stack_with_ceilings(_openpai_run(2), nodes=2, gpus=8),
    },
    fails={
        "nodes": _stack_with_ceilings(_job_with_shape(), _run_of_nodes(5), nodes=4),
        "an environment that nobody named": _stack_with_ceilings(_run_of_nodes(1), environment="dev2", nodes=4),
        "nodes of several jobs": JudgedStack(
            (_run_of_nodes(4), _run_of_nodes(4, job="bert")), "dev", {"stackCeilings": {"*": {"nodes": 7}}}
        ),
        "nodes of several runs": _stack_with_ceilings(_job_with_shape(), _run_of_nodes(3), _run_of_nodes(3), nodes=4),
        "accelerators": _stack_with_ceilings(_job_with_shape(), _run_of_nodes(4), gpus=7),
        "dollars": _stack_with_ceilings(_job_with_shape(), _run_of_nodes(4, 61), usd=16),
        "dollars, by retries of OpenPAI": _stack_with_ceilings(_openpai_run(2, 1), usd=3, prices=OPENPAI_PRICE),
        "dollars, by disks": _stack_with_ceilings(
            _job_with_shape(disk=100), _run_of_nodes(4), usd=16.3, prices={"GB of block storage": 0.001}
        ),
        "dollars of a flexible shape": _stack_with_ceilings(
            _job_with_shape(FLEX, {"ocpus": 10, "memoryInGbs": 51}), _run_of_nodes(1), usd=0.4
        ),
        "machines": _stack_with_ceilings(*_aws_machines(3), _run_of_nodes(2), nodes=2),
        "accelerators of machines": _stack_with_ceilings(*_aws_machines(3), _run_of_nodes(2), gpus=16),
        "a job without runs": _stack_with_ceilings(_job_with_shape(launch="nodes=5 ports=29400"), nodes=4),
        "a job of OpenPAI": _stack_with_ceilings(_openpai_run(3), gpus=8),
        "every other environment": JudgedStack(
            (_job_with_shape(), _run_of_nodes(5)), "dev", {"ceilings": {"*": {"nodes": 4}}}
        ),
    },
    unknown={
        "a shape without a price": _stack_with_ceilings(*_aws_machines(2), _run_of_nodes(2), usd=1000),
        "a flexible shape without its memory": _stack_with_ceilings(
            _job_with_shape(FLEX, {"ocpus": 1}), _run_of_nodes(1), usd=1000
        ),
        "retries without limit": _stack_with_ceilings(_openpai_run(2, -1), usd=1000, prices=OPENPAI_PRICE),
        "a compute target of somebody else": _stack_with_ceilings(ON_TARGET, _run_of_nodes(1), usd=1000),
        "a shape that the catalog does not know": _stack_with_ceilings(
            _job_with_shape("VM.New"), _run_of_nodes(2), gpus=1000
        ),
        "a shape decided elsewhere": _stack_with_ceilings(
            _job_with_shape(Unknown("shapeName")), _run_of_nodes(2), gpus=1000
        ),
        "a job that does not say its nodes": _stack_with_ceilings(_job_with_shape(), nodes=4),
        "a runtime decided elsewhere": _stack_with_ceilings(
            _job_with_shape(), _run_of_nodes(2, Unknown("maximumRuntimeMinutes")), usd=1000
        ),
    },
)
