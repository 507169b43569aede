# SPDX-License-Identifier: Apache-2.0
"""The images of a stack on the local cloud: this machine stands in for each, so nothing has to be built or pushed."""

from __future__ import annotations

from components.oci.registry import registry_host
from components.plan.model import Plan
from components.plan.naming import expand
from localcloud import admin
from localcloud.control import Cloud


def stand_by(cloud: Cloud, plan: Plan, borrowed: str = "") -> None:
    """Makes every image the stack names ready, for the moment its repository is there.

    `borrowed` is the address of another stack's repository, where this one takes its images from there.
    """
    host = f"{registry_host(cloud.region)}/{cloud.namespace}/"
    names = {"namespace": cloud.namespace, "registry": borrowed or host + plan.registry.repository}
    for image in {expand(job.image, names) for job in plan.jobs.values()}:
        if image.startswith(host):
            admin.stand_by(cloud, image)
