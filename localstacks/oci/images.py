# SPDX-License-Identifier: Apache-2.0
"""The images of a stack on the local cloud: this machine stands in for each, so nothing has to be built or pushed."""

from __future__ import annotations

from pathlib import Path

from components.oci.registry import registry_host
from components.plan.model import Plan
from components.plan.naming import expand
from localcloud import admin
from localcloud.control import Cloud
from localcloud.environments.find import Environment
from localstacks.environments import environment_of

STACKS = Path(__file__).resolve().parents[2] / "stacks"


def ready_images(cloud: Cloud, plan: Plan, borrowed: str = "", stacks: Path = STACKS) -> None:
    """Makes every image the stack names ready, for the moment its repository is there.

    Each stands for the environment of its first job that has one here. `borrowed` is the address of another stack's
    repository, where this one takes its images from there.
    """
    host = f"{registry_host(cloud.region)}/{cloud.namespace}/"
    names = {"namespace": cloud.namespace, "registry": borrowed or host + plan.registry.repository}
    chosen: dict[str, str] = {}
    for job in plan.jobs.values():
        environment, image = environment_of(job, stacks), expand(job.image, names)
        chosen[image] = chosen.get(image) or (environment.name if isinstance(environment, Environment) else "")
    for image, environment_name in chosen.items():
        if image.startswith(host):
            admin.push_when_repository_exists(cloud, image, environment_name)
