# SPDX-License-Identifier: Apache-2.0
"""AWS DL1, as building and pushing images ask for it."""

from __future__ import annotations

from collections.abc import Mapping

from components.aws_dl1.client import registry
from components.aws_dl1.client.recipes import gaudi_recipe
from components.aws_dl1.plan import AwsDl1Plan
from components.plan.model import JobPlan, Plan
from components.platform import images as images_wanted
from components.platform import registered as registered_images
from components.platform.image_errors import ImageError
from components.platform.images import Endpoint, WantedImage
from components.platform.recipes import Recipe
from components.platform.registered import explain
from components.s3.calls import refusal
from components.s3.session import Session


class AwsImages:
    """`components.platform.images.ImagePlatform`, for one region and one caller."""

    def __init__(self, plan: AwsDl1Plan, session: Session) -> None:
        self._plan, self._session = plan, session

    def wanted_images(
        self, plan: Plan, namespace: str, registry: str, only: str | None, dry_run: bool
    ) -> tuple[list[WantedImage], list[str]]:
        if namespace:
            raise ImageError("addresses of ECR have no namespace\nRemove --namespace")
        asks = any("${registry}" in job.image for job in plan.jobs.values())
        address = registry or (self._registry(dry_run) if asks else "")
        return images_wanted.wanted_images(plan, {"registry": address}, lambda job: "", only)

    def _registry(self, dry_run: bool) -> str:
        plan = self._plan
        if "registry" in plan.taken:
            raise ImageError(
                f"{plan.stack} takes its registry from {plan.uses}\n"
                f'Say which it is: --registry "$(pulumi stack output imagePushAddress -s {plan.uses})"'
            )
        known = plan.account or (registry.UNKNOWN_ACCOUNT if dry_run else registry.account(self._session))
        return registry.registry_address(known, plan)

    def recipe(self, job: JobPlan, gpu: bool | None) -> Recipe:
        if gpu is not None:
            raise ImageError(f"{job.name}: nodes of {self._plan.platform} have Gaudi\nRemove --gpu or --no-gpu")
        return gaudi_recipe(self._plan, job.name)

    def is_arm(self, shape: str) -> bool:
        return False

    def judge(self, plan: Plan, image: WantedImage, overwrite: bool) -> str:
        if self._session.endpoint:
            raise ImageError(
                "the local AWS has no registry that container tools could push to\n"
                "Its nodes run code in environments of this machine: push when you deploy to AWS"
            )
        try:
            found = registry.look_up_image(self._session, plan, image)
        except Exception as error:
            return str(refusal("Ask ECR what it has", error)).partition("\n")[0]
        if found is not None:
            registered_images.judge(image.path, image.tag, found, overwrite, registry.make_words(plan))
        return ""

    def user_of(self, image: WantedImage) -> str:
        return registry.USER

    def by_hand(self, login: str) -> str:
        words = f"aws ecr get-login-password --region {self._plan.region} | {login}"
        return f"without credentials of AWS here, log in first: {words}"

    def login(self, place: Endpoint) -> tuple[str, str]:
        return registry.USER, registry.password(self._session, self._plan)

    def explain_failure(self, output: str, plan: Plan, image: WantedImage, login: str) -> ImageError:
        facts = {
            "host": image.host, "address": image.address, "repository": image.path, "tag": image.tag,
            "login": f"aws ecr get-login-password --region {plan.region} | {login}", "stack": plan.stack,
            "make": registry.make_words(plan),
        }  # fmt: skip
        return explain(output, registry.PUSH_FAILURES, facts)


def make(plan: AwsDl1Plan, environment: Mapping[str, str]) -> AwsImages:
    return AwsImages(plan, Session.of({"region": plan.region}, environment))
