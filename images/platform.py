# SPDX-License-Identifier: Apache-2.0
"""What building and pushing images needs to know of a platform; each platform's folder answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from catalog.platforms import import_platform, platforms_in
from components.plan.model import JobPlan, Plan
from components.platform.image_errors import ImageError
from components.platform.images import WantedImage
from components.platform.recipes import Recipe
from images.login import Endpoint


class ImagePlatform(Protocol):
    def wanted_images(
        self, plan: Plan, namespace: str, registry: str, only: str | None, dry_run: bool
    ) -> tuple[list[WantedImage], list[str]]:
        """The images to build, and in words why some jobs have none.

        `namespace` and `registry` are the values that a person gave. A dry run makes no call.
        """

    def recipe(self, job: JobPlan, gpu: bool | None) -> Recipe:
        """What the job's image is built from. `gpu` overrules what its shape says."""

    def is_arm(self, shape: str) -> bool: ...

    def judge(self, plan: Plan, image: WantedImage, overwrite: bool) -> str:
        """Raise if a push would do harm or cannot work. Return why this could not be checked, else an empty text."""

    def user_of(self, image: WantedImage) -> str:
        """The user name of a person who logs in by hand."""

    def by_hand(self, login: str) -> str:
        """How people log in by hand, for those without credentials here. `login`: the tool's words."""

    def login(self, place: Endpoint) -> tuple[str, str]:
        """A user and a password that are good for one push."""

    def explain_failure(self, output: str, plan: Plan, image: WantedImage, login: str) -> ImageError:
        """Why a push failed, from the last lines of the tool."""


def image_platform_of(plan: Plan, environment: Mapping[str, str]) -> ImagePlatform:
    """The platform that a plan is made for; `environment` says where its cloud is and who calls."""
    able = platforms_in("client.images")
    if plan.platform not in able:
        raise ImageError(
            f"{plan.stack} runs on {plan.platform}\nImages are built for stacks of {' and '.join(able)} so far"
        )
    made: ImagePlatform = import_platform(plan.platform, "client.images").make(plan, environment)
    return made
