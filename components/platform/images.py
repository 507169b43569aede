# SPDX-License-Identifier: Apache-2.0
"""The images that a stack's jobs name, their addresses, and which of them trainyard builds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from components.plan.model import JobPlan, Plan
from components.plan.naming import expand
from components.platform.base import answers
from components.platform.image_errors import ImageError
from components.platform.recipes import Recipe
from schemas.names import suggestion

_ADDRESS = re.compile(r"(?P<host>[^/]+)/(?P<repository>[^:@]+):(?P<tag>[^:@]+)")


@dataclass(frozen=True)
class WantedImage:
    """One image, and the jobs that run in it."""

    address: str
    jobs: tuple[JobPlan, ...]

    @property
    def host(self) -> str:
        return self.address.partition("/")[0]

    @property
    def path(self) -> str:
        """Its name on the host: without host and tag."""
        return self.address.partition("/")[2].rpartition(":")[0]

    @property
    def tag(self) -> str:
        return self.address.rpartition(":")[2]


@dataclass(frozen=True)
class Endpoint:
    """The registry as tools are to reach it."""

    host: str
    plain_http: bool = False
    elsewhere: bool = False

    def address(self, image: str) -> str:
        """What a tool calls an image here."""
        return f"{self.host}/{image.partition('/')[2]}" if self.elsewhere else image

    @property
    def url(self) -> str:
        return f"{'http' if self.plain_http else 'https'}://{self.host}"


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
    return answers(plan.platform).images(plan, environment)


def wanted_images(
    plan: Plan, names: Mapping[str, str], built_elsewhere: Callable[[JobPlan], str], only: str | None = None
) -> tuple[list[WantedImage], list[str]]:
    """The images to build, and remarks on the jobs whose images are not built here.

    `names` are the values of the placeholders in addresses. `built_elsewhere` returns why another tool builds the
    image of a job, else an empty text.
    """
    jobs_of: dict[str, list[JobPlan]] = {}
    remarks = []
    for job in _jobs(plan, only):
        address = expand(job.image, names)
        if remark := built_elsewhere(job) or _not_ours(job, address):
            remarks.append(remark)
        else:
            jobs_of.setdefault(address, []).append(job)
    return [WantedImage(address, tuple(jobs)) for address, jobs in jobs_of.items()], remarks


def _jobs(plan: Plan, only: str | None) -> list[JobPlan]:
    if only is None:
        if not plan.jobs:
            raise ImageError(f"{plan.stack} has no jobs\nAdd one under `trainyard:jobs` with the image it runs in")
        return list(plan.jobs.values())
    if only not in plan.jobs:
        raise ImageError(f"{plan.stack} has no job `{only}`\n{suggestion(only, plan.jobs)}")
    return [plan.jobs[only]]


def _not_ours(job: JobPlan, address: str) -> str:
    """Why a job's image is not built here; empty when it is."""
    if "@sha256:" in address:
        return f"{job.name}: {address} is named by its digest, so it exists already and cannot be replaced"
    if not _ADDRESS.fullmatch(address):
        return f"{job.name}: {address} has no registry or no tag, so there is no place to push it to"
    return ""
