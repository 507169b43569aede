# SPDX-License-Identifier: Apache-2.0
"""What a job of a stack takes at the most: nodes and accelerators at once, and dollars in all its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.machines import COMPUTE_TARGET, Price, accelerators_of, longest_hours, price_of
from catalog.tables import table
from policies.jobs import LAUNCH_TAG, PolicyJob, launch_tag, nodes_of_run, retries_of
from policies.rule import JudgedResource, NotKnownError

NO_PRICE = "has no known price: name one under `prices`"


@dataclass(frozen=True, slots=True)
class Machine:
    """One node. `usd` and `accelerators` raise NotKnownError where nobody knows them."""

    shape: str
    accelerators: Callable[[], float]
    usd: Callable[[], float]


def nodes_at_once(job: PolicyJob) -> int:
    """Nodes that run at the same time. Runs of AWS take turns on the machines that the job has."""
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
    """Every run for its maximum runtime, tried as often as it may be. A job without runs: one run of it.

    `targets`: whether the stack has compute targets of its own.
    """
    usd = machine_of(job, prices, targets).usd
    if not job.runs:
        return nodes_at_once(job) * _hours(_minutes_of_job(job.job), 0, job.name) * usd() if job.job else 0.0
    return sum(nodes_of_run(run) * _hours_of_run(run) * usd() for run in job.runs)


def _hours_of_run(run: JudgedResource) -> float:
    minutes = run.properties.get("maximumRuntimeMinutes") or _missing(run, "maximumRuntimeMinutes")
    return _hours(minutes, retries_of(run), run.name)


def _hours(minutes: Any, retries: int, name: str) -> float:
    hours = longest_hours(float(minutes), retries)
    return hours if hours is not None else _unknown(f"retry.count` of `{name}", "has no limit, so nothing bounds it")


def machine_of(job: PolicyJob, prices: Mapping[str, Any], targets: bool = False) -> Machine:
    if job.template is not None:
        shape = str(job.template.properties.get("instanceType"))
        return _machine(shape, table("aws_dl1")["shapes"], lambda: price_of(shape, prices))
    if job.job is not None:
        return _machine_of_oci(job.job, prices, targets)
    names = " ".join(sorted({str(run.properties.get("platform")) for run in job.runs}))
    return Machine("", lambda: _unknown("accelerators"), _usd(names, lambda: price_of(names, prices)))


def _machine_of_oci(job: JudgedResource, prices: Mapping[str, Any], targets: bool) -> Machine:
    details = _infrastructure(job)
    if details.get("computeTargetId") is not None:
        asked = (details.get("resourceConfiguration") or {}).get("resourceRequestConfiguration") or {}
        # Its machines are paid for as the compute target's, whether or not a job is on them. Somebody else's have a
        # price that only the team knows.
        price = Price(0.0) if targets else price_of(COMPUTE_TARGET, prices)
        gpus = float(asked.get("gpus") or 0)
        return Machine("a compute target", lambda: gpus, _usd(COMPUTE_TARGET, lambda: price))
    shape = str(details.get("shapeName"))
    size = details.get("jobShapeConfigDetails") or {}
    return _machine(shape, table("shapes"), lambda: price_of(shape, prices, size.get("ocpus"), size.get("memoryInGbs")))


def _machine(shape: str, rows: Mapping[str, Any], price: Callable[[], Price]) -> Machine:
    def accelerators() -> float:
        number = accelerators_of(shape, rows)
        return number if number is not None else _unknown(shape, "is not a shape of the catalog")

    return Machine(shape, accelerators, _usd(shape, price))


def _usd(what: str, price: Callable[[], Price]) -> Callable[[], float]:
    def usd() -> float:
        known = price().usd_per_hour
        return known if known is not None else _unknown(what, NO_PRICE)

    return usd


def _infrastructure(job: JudgedResource) -> Mapping[str, Any]:
    groups = _groups(job)
    where = groups[0] if groups else job.properties
    return where.get("jobInfrastructureConfigurationDetails") or {}


def _groups(job: JudgedResource) -> list[Mapping[str, Any]]:
    details = job.properties.get("jobNodeConfigurationDetails") or {}
    return [*(details.get("jobNodeGroupConfigurationDetailsLists") or ())]


def _nodes_of_job(job: JudgedResource) -> int:
    groups = _groups(job)
    if groups:
        return sum(int(group.get("replicas") or 1) for group in groups)
    said = launch_tag(job).get("nodes")
    return int(said) if said else int(_unknown(f"{LAUNCH_TAG}` (a tag) of `{job.name}"))


def _minutes_of_job(job: JudgedResource) -> Any:
    parts = ("jobConfigurationDetails", "jobNodeConfigurationDetails")
    found = [(job.properties.get(part) or {}).get("maximumRuntimeInMinutes") for part in parts]
    return next(filter(None, found), None) or _missing(job, "maximumRuntimeInMinutes")


def _gpus_of_protocol(run: JudgedResource) -> float:
    roles = (run.properties.get("protocol") or {}).get("taskRoles") or {}
    return sum(
        float((role.get("resourcePerInstance") or {}).get("gpu") or 0) * int(role.get("instances") or 1)
        for role in roles.values()
    )


def _missing(resource: JudgedResource, key: str) -> float:
    return _unknown(f"{key}` of `{resource.name}", "is not set, so nothing bounds it")


def _unknown(what: str, why: str = "is not known") -> float:
    raise NotKnownError(what, why)
