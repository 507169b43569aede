# SPDX-License-Identifier: Apache-2.0
"""The images of a stack on the local cloud: this machine stands in for each, so nothing has to be built or pushed."""

from __future__ import annotations

from components.oci.registry import registry_host
from components.plan.model import Plan
from components.plan.naming import expand
from components.platform.local_cloud import LocalCloud
from localcloud import admin


def ready_images(cloud: LocalCloud, plan: Plan, borrowed: str = "") -> None:
    """Makes every image the stack names ready, for the moment its repository is there. Which environment stands in for
    an image is decided when a run starts.

    `borrowed` is the address of another stack's repository, where this one takes its images from there.
    """
    host = f"{registry_host(cloud.region)}/{cloud.namespace}/"
    names = {"namespace": cloud.namespace, "registry": borrowed or host + plan.registry.repository}
    for image in dict.fromkeys(expand(job.image, names) for job in plan.jobs.values()):
        if image.startswith(host):
            admin.push_when_repository_exists(cloud, image)
