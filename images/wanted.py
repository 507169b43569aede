# SPDX-License-Identifier: Apache-2.0
"""Which images a stack's jobs name, at which address, and which of them are for trainyard to build."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from components.oci.registry import registry_host
from components.plan.model import JobPlan, Plan
from components.plan.naming import expand
from schemas.names import suggestion

PLATFORM = "oci"
# Stands in the words of a dry run where nobody was asked.
UNKNOWN_NAMESPACE = "<namespace>"
_ADDRESS = re.compile(r"(?P<host>[^/]+)/(?P<repository>[^:@]+):(?P<tag>[^:@]+)")


class ImageError(Exception):
    """What keeps an image from being built or pushed; the second line says what to do."""


@dataclass(frozen=True)
class Wanted:
    """One image, and the jobs that run in it."""

    address: str
    jobs: tuple[JobPlan, ...]

    @property
    def host(self) -> str:
        return self.address.partition("/")[0]

    @property
    def namespace(self) -> str:
        return self.address.split("/")[1]

    @property
    def repository(self) -> str:
        """As the registry lists it: without host, namespace and tag."""
        return self.address.partition("/")[2].partition("/")[2].rpartition(":")[0]

    @property
    def tag(self) -> str:
        return self.address.rpartition(":")[2]


def needs_namespace(plan: Plan, registry: str) -> bool:
    """Whether an address cannot be told without the tenancy's namespace."""
    texts = [job.image for job in plan.jobs.values()]
    return any("${namespace}" in text or ("${registry}" in text and not registry) for text in texts)


def wanted(plan: Plan, namespace: str, registry: str = "", only: str | None = None) -> tuple[list[Wanted], list[str]]:
    """The images to build, and in words why some jobs have none. `registry` is what ${registry} stands for, if told."""
    names = {"namespace": namespace, "registry": registry or _registry(plan, namespace)}
    found: dict[str, list[JobPlan]] = {}
    remarks = []
    for job in _jobs(plan, only):
        address = expand(job.image, names)
        if remark := _not_ours(job, address):
            remarks.append(remark)
        else:
            found.setdefault(address, []).append(job)
    return [Wanted(address, tuple(jobs)) for address, jobs in found.items()], remarks


def _jobs(plan: Plan, only: str | None) -> list[JobPlan]:
    if plan.platform != PLATFORM:
        raise ImageError(f"{plan.stack} runs on {plan.platform}\nImages are built for stacks of {PLATFORM}")
    if only is None:
        if not plan.jobs:
            raise ImageError(f"{plan.stack} has no jobs\nAdd one under `trainyard:jobs` with the image it runs in")
        return list(plan.jobs.values())
    if only not in plan.jobs:
        raise ImageError(f"{plan.stack} has no job `{only}`\n{suggestion(only, plan.jobs)}")
    return [plan.jobs[only]]


def _registry(plan: Plan, namespace: str) -> str:
    if "registry" in plan.taken and any("${registry}" in job.image for job in plan.jobs.values()):
        raise ImageError(
            f"{plan.stack} takes its registry from {plan.uses}\n"
            f'Say which it is: --registry "$(pulumi stack output imagePushAddress -s {plan.uses})"'
        )
    return f"{registry_host(plan.region)}/{namespace}/{plan.registry.repository}"


def _not_ours(job: JobPlan, address: str) -> str:
    """Why a job's image is not built here; empty when it is."""
    if built_with_ads(job):
        return (
            f"{job.name}: its image is built with ADS (options: adsDriver), so there is nothing to build here; "
            "`ads opctl distributed-training build-image` and `publish-image` make it"
        )
    if "@sha256:" in address:
        return f"{job.name}: {address} is named by its digest: it exists already, and no other can be put in its place"
    if not _ADDRESS.fullmatch(address):
        return f"{job.name}: {address} has no registry or no tag, so there is no place to push it to"
    return ""


def built_with_ads(job: JobPlan) -> bool:
    """Whether the job says that its image brings ADS's own driver."""
    told: list[Mapping[str, object]] = [node.launch["options"] for run in job.runs.values() for node in run.nodes]
    return any(options.get("adsDriver") for options in told)
