# SPDX-License-Identifier: Apache-2.0
"""The images of a stack on the local cloud: this machine stands in for each, so nothing has to be built or pushed."""

from __future__ import annotations

from pathlib import Path

from catalog import frameworks
from components.oci.registry import registry_host
from components.plan.model import JobPlan, Plan
from components.plan.naming import expand
from localcloud import admin
from localcloud.control import Cloud
from localcloud.environments.find import Environment, Missing, find_for
from localcloud.environments.imports import imported

STACKS = Path(__file__).resolve().parents[1] / "stacks"


def environment_of(job: JobPlan, stacks: Path) -> Environment | Missing:
    """Where a job can run on this machine, by its framework and the modules that its code imports."""
    folder = job.code.folder if job.code else None
    modules = imported(stacks / folder) if folder else frozenset[str]()
    return find_for(job.framework, job.strategy, modules, team_own=job.framework not in frameworks.names())


def untrained(job: JobPlan, stacks: Path) -> str:
    """Why this machine cannot train a job; empty when it can."""
    if job.code is None or job.code.folder is None:
        return "its code comes from git" if job.code else "its code is in its image"
    found = environment_of(job, stacks)
    if isinstance(found, Environment):
        return ""
    return f"{found.reason} ({found.remedy})" if found.remedy else found.reason


def stand_by(cloud: Cloud, plan: Plan, borrowed: str = "", stacks: Path = STACKS) -> None:
    """Makes every image the stack names ready, for the moment its repository is there.

    Each stands for the environment of its first job that has one here. `borrowed` is the address of another stack's
    repository, where this one takes its images from there.
    """
    host = f"{registry_host(cloud.region)}/{cloud.namespace}/"
    names = {"namespace": cloud.namespace, "registry": borrowed or host + plan.registry.repository}
    chosen: dict[str, str] = {}
    for job in plan.jobs.values():
        found, image = environment_of(job, stacks), expand(job.image, names)
        chosen[image] = chosen.get(image) or (found.name if isinstance(found, Environment) else "")
    for image, environment in chosen.items():
        if image.startswith(host):
            admin.stand_by(cloud, image, environment)
