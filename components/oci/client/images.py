# SPDX-License-Identifier: Apache-2.0
"""Implements `ImagePlatform` for OCI: builds of images, and pushes to OCIR."""

from __future__ import annotations

from collections.abc import Mapping

from components.oci.client import registry
from components.oci.client.registry import (
    TOKEN_USER,
    UNKNOWN_NAMESPACE,
    images_to_build_for_oci,
    namespace_of_image,
    needs_namespace,
    registry_token,
)
from components.oci.client.session import Session
from components.plan.model import JobPlan, Plan
from components.platform.images import Endpoint, ImageError, PlatformImages, Recipe, WantedImage, recipe_of_framework


class OciImages:
    """Implements `components.platform.images.ImagePlatform` for one region and one caller."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def wanted_images(
        self, plan: Plan, namespace: str, registry: str, only: str | None, dry_run: bool
    ) -> tuple[list[WantedImage], list[str]]:
        if not namespace and needs_namespace(plan, registry):
            namespace = UNKNOWN_NAMESPACE if dry_run else self._namespace()
        return images_to_build_for_oci(plan, namespace, registry, only)

    def _namespace(self) -> str:
        return registry.tenancy_namespace(self._session)

    def recipe(self, job: JobPlan, gpu: bool | None) -> Recipe:
        return recipe_of_framework(
            job.framework, job.strategy, registry.has_gpu(job.shape.name) if gpu is None else gpu
        )

    def is_arm(self, shape: str) -> bool:
        return registry.is_arm(shape)

    def judge(self, plan: Plan, image: WantedImage, overwrite: bool) -> str:
        try:
            registered = registry.look_up_image_in_ocir(self._session, plan, image)
        except ImageError as error:
            return str(error).partition("\n")[0]
        if registered is not None:
            registry.require_possible_push(plan, image, registered, overwrite)
        return ""

    def user_of(self, image: WantedImage) -> str:
        return f"{namespace_of_image(image)}/<user>"

    def by_hand(self, login: str) -> str:
        return f"without an API key, log in first, with an auth token on standard input: {login}"

    def login(self, place: Endpoint) -> tuple[str, str]:
        return TOKEN_USER, registry_token(self._session, place)

    def explain_failure(self, output: str, plan: Plan, image: WantedImage, login: str) -> ImageError:
        return registry.explain_failure(output, plan, image, login)


def make_oci_image_client(plan: Plan, environment: Mapping[str, str]) -> OciImages:
    return OciImages(Session.of({"region": plan.region}, environment))


PLATFORM_IMAGES = PlatformImages(make_oci_image_client)
