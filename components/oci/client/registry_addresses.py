# SPDX-License-Identifier: Apache-2.0
"""Addresses in OCI's registry: region, the tenancy's namespace, repository."""

from __future__ import annotations

from collections.abc import Mapping

from components.oci.registry import registry_host
from components.plan.model import JobPlan, Plan
from components.platform import images as images_wanted
from components.platform.image_errors import ImageError
from components.platform.images import WantedImage

# Stands in the words of a dry run where nobody was asked.
UNKNOWN_NAMESPACE = "<namespace>"


def namespace_of(image: WantedImage) -> str:
    return image.path.partition("/")[0]


def repository_of(image: WantedImage) -> str:
    """As the registry lists it: without host, namespace and tag."""
    return image.path.partition("/")[2]


def needs_namespace(plan: Plan, registry: str) -> bool:
    """Whether an address cannot be told without the tenancy's namespace."""
    texts = [job.image for job in plan.jobs.values()]
    return any("${namespace}" in text or ("${registry}" in text and not registry) for text in texts)


def wanted_images(
    plan: Plan, namespace: str, registry: str = "", only: str | None = None
) -> tuple[list[WantedImage], list[str]]:
    """The images to build, and in words why some jobs have none. `registry` is what ${registry} stands for, if told."""
    names = {"namespace": namespace, "registry": registry or _registry(plan, namespace)}
    return images_wanted.wanted_images(plan, names, built_with_ads, only)


def _registry(plan: Plan, namespace: str) -> str:
    if "registry" in plan.taken and any("${registry}" in job.image for job in plan.jobs.values()):
        raise ImageError(
            f"{plan.stack} takes its registry from {plan.uses}\n"
            f'Say which it is: --registry "$(pulumi stack output imagePushAddress -s {plan.uses})"'
        )
    return f"{registry_host(plan.region)}/{namespace}/{plan.registry.repository}"


def built_with_ads(job: JobPlan) -> str:
    """That the image brings ADS's own driver, where the job says so; empty where it does not."""
    options: list[Mapping[str, object]] = [node.launch["options"] for run in job.runs.values() for node in run.nodes]
    if not any(one.get("adsDriver") for one in options):
        return ""
    return (
        f"{job.name}: its image is built with ADS (options: adsDriver), so there is nothing to build here; "
        "`ads opctl distributed-training build-image` and `publish-image` make it"
    )
