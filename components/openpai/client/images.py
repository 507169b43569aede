# SPDX-License-Identifier: Apache-2.0
"""Implements `ImagePlatform` for OpenPAI: pushes to any registry, of which only the address is known."""

from __future__ import annotations

from components.openpai.plan import OpenPaiJobPlan, OpenPaiPlan, openpai_plan
from components.plan.model import JobPlan, Plan
from components.platform import images as neutral
from components.platform.images import (
    IMMUTABLE,
    NOT_BUILT,
    UNREACHABLE,
    Endpoint,
    ImageError,
    PlatformImages,
    PushFailure,
    Recipe,
    WantedImage,
    explain_failed_push,
    recipe_of_framework,
)

_PUSH_FAILURES = (
    PushFailure(
        r"no basic auth|unauthorized|authentication required|denied|\b40[13]\b",
        "{host} does not let you push to {repository}",
        "Log in first, as somebody who may: {login}",
    ),
    IMMUTABLE,
    NOT_BUILT,
    PushFailure(
        r"name unknown|name_unknown|repository .*(?:not found|does not exist)|\b404\b",
        "{host} has no repository {repository}",
        "Make it in the registry, or write another address in the stack file",
    ),
    UNREACHABLE,
)


class OpenPaiImages:
    """Implements `components.platform.images.ImagePlatform`."""

    def __init__(self, plan: OpenPaiPlan) -> None:
        self._plan = plan

    def wanted_images(
        self, plan: Plan, namespace: str, registry: str, only: str | None, dry_run: bool
    ) -> tuple[list[WantedImage], list[str]]:
        if namespace:
            raise ImageError("images of OpenPAI have no namespace of a tenancy\nRemove --namespace")
        names = {"registry": registry or self._plan.registry_address}
        return neutral.images_to_build(plan, names, self._plain, only)

    def _plain(self, job: JobPlan) -> str:
        """The reason why images of jobs without the launcher are not built: images that trainyard builds have it."""
        if isinstance(job, OpenPaiJobPlan) and job.start != "launcher":
            start = f"{job.name}: `start: {job.start}`"
            return f"{start} uses an image without the launcher; trainyard builds images with it"
        return ""

    def recipe(self, job: JobPlan, gpu: bool | None) -> Recipe:
        has_gpu = isinstance(job, OpenPaiJobPlan) and any(role.sku.gpus for role in job.task_roles.values())
        return recipe_of_framework(job.framework, job.strategy, has_gpu if gpu is None else gpu)

    def is_arm(self, shape: str) -> bool:
        return False

    def judge(self, plan: Plan, image: WantedImage, overwrite: bool) -> str:
        return f"{image.host} is not searched for the image"

    def user_of(self, image: WantedImage) -> str:
        job = next((job for job in image.jobs if isinstance(job, OpenPaiJobPlan) and job.image_auth), None)
        return job.image_auth.user if job is not None and job.image_auth is not None else "<user>"

    def by_hand(self, login: str) -> str:
        return f"without a login of the tool here, log in first: {login}"

    def login(self, place: Endpoint) -> tuple[str, str]:
        raise ImageError("the registry's password is a secret of the stack file, which commands cannot read")

    def explain_failure(self, output: str, plan: Plan, image: WantedImage, login: str) -> ImageError:
        return explain_failed_push(output, _PUSH_FAILURES, plan, image, login=login)


PLATFORM_IMAGES = PlatformImages(lambda plan, environment: OpenPaiImages(openpai_plan(plan)))
