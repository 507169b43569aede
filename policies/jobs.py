# SPDX-License-Identifier: Apache-2.0
"""The jobs of a stack, read from its resources: nodes, accelerators, longest runtime, ports, and the most they cost.

A run has the launch documents of its nodes (`TRAINYARD_LAUNCH`). A job without runs has the tag `launch` instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from catalog.machines import (
    COMPUTE_TARGET,
    Price,
    accelerators_of,
    longest_run_hours,
    price_of,
    price_with_block_storage,
    retries_in_all,
)
from catalog.reason_tags import LAUNCH
from components.values.resource_types import JobPart, types_of_part
from policies.rule import JudgedResource, JudgedStack, NotKnownError

# The types of a job's resources, with what each is of the job.
TYPES = types_of_part(*get_args(JobPart))
# The tag with the name of the job, on all its resources.
JOB_TAG = "job"
LAUNCH_VARIABLE = "TRAINYARD_LAUNCH"
EVERY_PORT = (0, 65535)
_WORD = re.compile(r"(nodes|ports)=(\S*)")

Ports = tuple[int, int]
NO_PRICE = "has no known price: name one under `prices`"


@dataclass(frozen=True, slots=True)
class PolicyJob:
    """The resources of one job. `resource`: the one that a verdict on the job names."""

    name: str
    runs: tuple[JudgedResource, ...]
    job: JudgedResource | None
    machines: tuple[JudgedResource, ...]
    template: JudgedResource | None

    @property
    def resource(self) -> JudgedResource | None:
        return next(iter((*filter(None, (self.job, self.template)), *self.runs, *self.machines)), None)


def jobs_of(stack: JudgedStack) -> tuple[PolicyJob, ...]:
    """The jobs, by the tag of their resources. Raises NotKnownError if the tag of a resource is unknown."""
    by_name: dict[str, list[JudgedResource]] = {}
    for resource in stack.of_types(TYPES):
        named = resource.tags.get(JOB_TAG) or resource.name.partition("/")[0]
        by_name.setdefault(str(named), []).append(resource)
    jobs = []
    for name, resources in by_name.items():
        parts: dict[str, list[JudgedResource]] = {part: [] for part in get_args(JobPart)}
        for resource in resources:
            parts[TYPES[resource.type]].append(resource)
        job, template = (next(iter(parts[part]), None) for part in ("job", "template"))
        jobs.append(PolicyJob(name, tuple(parts["run"]), job, tuple(parts["machine"]), template))
    return tuple(jobs)


def nodes_of_run(run: JudgedResource) -> int:
    return sum(int(node.get("replicas") or 1) for node in run.properties.get("nodes") or ())


def documents_of(run: JudgedResource) -> Iterator[Mapping[str, Any]]:
    """The launch document of each node. Raises NotKnownError if it depends on another resource."""
    for node in run.properties.get("nodes") or ():
        text = (node.get("environment") or {}).get(LAUNCH_VARIABLE)
        if text is not None:
            yield json.loads(str(text))


def retries_of(run: JudgedResource) -> int:
    """How often the platform itself starts a task again at most. Negative: unlimited."""
    protocol = run.properties.get("protocol") or {}
    roles = (protocol.get("taskRoles") or {}).values()
    return retries_in_all(
        int(protocol.get("jobRetryCount") or 0), [int(role.get("taskRetryCount") or 0) for role in roles]
    )


def ports_of_run(run: JudgedResource) -> Iterator[Ports]:
    for document in documents_of(run):
        for port in (document.get("ports") or {}).values():
            first, last = port.get("range") or EVERY_PORT
            yield int(first), int(last)


def launch_tag(job: JudgedResource) -> Mapping[str, str]:
    """The values in the tag `launch` of a job. Empty if it has no tag."""
    return dict(_WORD.findall(str(job.tags.get(LAUNCH) or "")))


def ports_of_tag(text: str) -> Iterator[Ports]:
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        yield EVERY_PORT if part == "all" else (int(first), int(last or first))


@dataclass(frozen=True, slots=True)
class JobMachine:
    """The machine of one node. `usd` and `accelerators` raise NotKnownError if they are unknown."""

    shape: str
    accelerators: Callable[[], float]
    usd: Callable[[], float]


def nodes_at_once(job: PolicyJob) -> int:
    """Nodes that run at the same time. On AWS, runs take turns on the machines of the job."""
    if job.machines:
        return len(job.machines)
    if job.runs:
        return sum(nodes_of_run(run) for run in job.runs)
    return _nodes_of_job(job.job) if job.job else 0


def accelerators_at_once(job: PolicyJob) -> float:
    if job.machines or job.template or job.job:
        return nodes_at_once(job) * machine_of(job, {}).accelerators()
    return sum(_gpus_of_protocol(run) for run in job.runs)


def dollars_at_most(job: PolicyJob, prices: Mapping[str, Any], targets: bool = False) -> float:
    """The cost if each run takes as long as its platform lets it. For a job without runs: the cost of one.

    `targets`: whether the stack has compute targets of its own.
    """
    usd = machine_of(job, prices, targets).usd
    if not job.runs:
        # Nothing starts it again, on any platform.
        hours = longest_run_hours("", float(_minutes_of_job(job.job)), 0) if job.job else 0.0
        return nodes_at_once(job) * (hours or 0.0) * usd() if job.job else 0.0
    return sum(nodes_of_run(run) * _hours_of_run(run) * usd() for run in job.runs)


def _hours_of_run(run: JudgedResource) -> float:
    minutes = run.properties.get("maximumRuntimeMinutes") or _raise_missing(run, "maximumRuntimeMinutes")
    hours = longest_run_hours(str(run.properties.get("platform")), float(minutes), retries_of(run))
    return (
        hours
        if hours is not None
        else _raise_not_known(f"retry.count` of `{run.name}", "has no limit, so nothing bounds it")
    )


def machine_of(job: PolicyJob, prices: Mapping[str, Any], targets: bool = False) -> JobMachine:
    if job.template is not None:
        shape = str(job.template.properties.get("instanceType"))
        return _job_machine(shape, lambda: price_of(shape, prices))
    if job.job is not None:
        return _machine_of_oci(job.job, prices, targets)
    names = " ".join(sorted({str(run.properties.get("platform")) for run in job.runs}))
    return JobMachine(
        "", lambda: _raise_not_known("accelerators"), _price_in_usd(names, lambda: price_of(names, prices))
    )


def _machine_of_oci(job: JudgedResource, prices: Mapping[str, Any], targets: bool) -> JobMachine:
    groups = _node_groups_of(job)
    where = groups[0] if groups else job.properties
    details = where.get("jobInfrastructureConfigurationDetails") or {}
    if details.get("computeTargetId") is not None:
        resources = (details.get("resourceConfiguration") or {}).get("resourceRequestConfiguration") or {}
        # The compute target is paid for, whether or not a job uses it. Only the team knows the price of a target of
        # another stack.
        price = Price(0.0) if targets else price_of(COMPUTE_TARGET, prices)
        gpus = float(resources.get("gpus") or 0)
        return JobMachine("a compute target", lambda: gpus, _price_in_usd(COMPUTE_TARGET, lambda: price))
    shape = str(details.get("shapeName"))
    size = details.get("jobShapeConfigDetails") or {}
    storage = float(details.get("blockStorageSizeInGbs") or 0)

    def price_of_node() -> Price:
        machine = price_of(shape, prices, size.get("ocpus"), size.get("memoryInGbs"))
        return price_with_block_storage(machine, storage, prices)

    return _job_machine(shape, price_of_node)


def _job_machine(shape: str, price: Callable[[], Price]) -> JobMachine:
    def accelerators() -> float:
        number = accelerators_of(shape)
        return number if number is not None else _raise_not_known(shape, "is not a shape of the catalog")

    return JobMachine(shape, accelerators, _price_in_usd(shape, price))


def _price_in_usd(what: str, price: Callable[[], Price]) -> Callable[[], float]:
    def usd() -> float:
        known = price().usd_per_hour
        return known if known is not None else _raise_not_known(what, NO_PRICE)

    return usd


def _node_groups_of(job: JudgedResource) -> list[Mapping[str, Any]]:
    details = job.properties.get("jobNodeConfigurationDetails") or {}
    return [*(details.get("jobNodeGroupConfigurationDetailsLists") or ())]


def _nodes_of_job(job: JudgedResource) -> int:
    groups = _node_groups_of(job)
    if groups:
        return sum(int(group.get("replicas") or 1) for group in groups)
    nodes = launch_tag(job).get("nodes")
    return int(nodes) if nodes else int(_raise_not_known(f"{LAUNCH}` (a tag) of `{job.name}"))


def _minutes_of_job(job: JudgedResource) -> Any:
    parts = ("jobConfigurationDetails", "jobNodeConfigurationDetails")
    found = [(job.properties.get(part) or {}).get("maximumRuntimeInMinutes") for part in parts]
    return next(filter(None, found), None) or _raise_missing(job, "maximumRuntimeInMinutes")


def _gpus_of_protocol(run: JudgedResource) -> float:
    roles = (run.properties.get("protocol") or {}).get("taskRoles") or {}
    return sum(
        float((role.get("resourcePerInstance") or {}).get("gpu") or 0) * int(role.get("instances") or 1)
        for role in roles.values()
    )


def _raise_missing(resource: JudgedResource, key: str) -> float:
    return _raise_not_known(f"{key}` of `{resource.name}", "is not set, so nothing bounds it")


def _raise_not_known(what: str, why: str = "is not known") -> float:
    raise NotKnownError(what, why)
