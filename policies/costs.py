# SPDX-License-Identifier: Apache-2.0
"""What a job of a stack takes at the most: nodes and accelerators at once, and dollars in all its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.tables import table
from policies.jobs import LAUNCH_TAG, PolicyJob, launch_tag, nodes_of_run, retries_of
from policies.rule import JudgedResource, NotKnownError

MINUTES = 60
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


def dollars_at_most(job: PolicyJob, prices: Mapping[str, float]) -> float:
    """Every run for its maximum runtime, tried as often as it may be. A job without runs: one run of it."""
    if not job.runs:
        minutes = float(_minutes_of_job(job.job)) if job.job else 0
        return nodes_at_once(job) * minutes / MINUTES * machine_of(job, prices).usd()
    return sum(
        nodes_of_run(run)
        * float(run.properties.get("maximumRuntimeMinutes") or _missing(run, "maximumRuntimeMinutes"))
        / MINUTES
        * (1 + retries_of(run))
        * machine_of(job, prices).usd()
        for run in job.runs
    )


def machine_of(job: PolicyJob, prices: Mapping[str, float]) -> Machine:
    if job.template is not None:
        shape = str(job.template.properties.get("instanceType"))
        return Machine(shape, lambda: _row(table("aws_dl1")["shapes"], shape)["accelerators"], _price(shape, prices))
    if job.job is not None:
        return _machine_of_oci(job.job, prices)
    names = {str(run.properties.get("platform")) for run in job.runs}
    return Machine("", lambda: _unknown("accelerators"), _price(" ".join(sorted(names)), prices))


def _machine_of_oci(job: JudgedResource, prices: Mapping[str, float]) -> Machine:
    details = _infrastructure(job)
    if details.get("computeTargetId") is not None:
        asked = (details.get("resourceConfiguration") or {}).get("resourceRequestConfiguration") or {}
        # Its machines are paid for as the compute target's, whether or not a job is on them.
        return Machine("a compute target", lambda: float(asked.get("gpus") or 0), lambda: 0.0)
    shape = str(details.get("shapeName"))
    share = details.get("jobShapeConfigDetails") or {}
    return Machine(
        shape, lambda: _row(table("shapes"), shape).get("accelerators", 0), _price_of_oci(shape, share, prices)
    )


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


def _price_of_oci(shape: str, share: Mapping[str, Any], prices: Mapping[str, float]) -> Callable[[], float]:
    row = table("shapes").get(shape) or {}
    if shape in prices or "usd_per_ocpu_hour" not in row:
        return _price(shape, prices, row)
    return lambda: (
        float(share.get("ocpus") or 1) * row["usd_per_ocpu_hour"]
        + float(share.get("memoryInGbs") or 0) * row["usd_per_gib_hour"]
    )


def _price(shape: str, prices: Mapping[str, float], row: Mapping[str, Any] | None = None) -> Callable[[], float]:
    known = prices.get(shape, (row or {}).get("usd_per_hour"))
    return lambda: float(known) if known is not None else _unknown(shape, NO_PRICE)


def _row(rows: Mapping[str, Any], shape: str) -> Mapping[str, Any]:
    if shape not in rows:
        raise NotKnownError(shape, "is not a shape of the catalog")
    found: Mapping[str, Any] = rows[shape]
    return found


def _missing(resource: JudgedResource, key: str) -> float:
    return _unknown(f"{key}` of `{resource.name}", "is not set, so nothing bounds it")


def _unknown(what: str, why: str = "is not known") -> float:
    raise NotKnownError(what, why)
