# SPDX-License-Identifier: Apache-2.0
"""Implements `ImagePlatform` for AWS: recipes by the machines' accelerators, and pushes to ECR."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from catalog.aws import accelerator_of_machine, aws_machine
from components.aws.plan import AwsDl1Plan, AwsJobPlan, aws_dl1_job, aws_dl1_plan
from components.plan.model import JobPlan, Plan
from components.platform import images as neutral
from components.platform.calls import ProviderError
from components.platform.images import (
    IMAGES,
    IMMUTABLE,
    NO_REPOSITORY,
    NOT_BUILT,
    UNREACHABLE,
    Endpoint,
    ImageError,
    PlatformImages,
    PushFailure,
    Recipe,
    RegisteredImage,
    WantedImage,
    explain_failed_push,
    recipe_of_framework,
)
from components.s3 import Session, aws_refusal, code_of

# The user name that ECR expects with a token.
USER = "AWS"
# A dry run shows this in place of the account that was not looked up.
UNKNOWN_ACCOUNT = "<account>"
# The first match counts: ECR's message for an unauthenticated caller also contains `denied`.
PUSH_FAILURES = (
    PushFailure(
        r"no basic auth|authorization token has expired|not authenticated|authentication required|unauthori[sz]ed",
        "{host} got no login, or did not accept it",
        "Log in: {login}",
    ),
    IMMUTABLE,
    PushFailure(
        r"denied|forbidden|not authorized|\b403\b",
        "the principal that is logged in to {host} may not push to {repository}",
        "Pushing needs ecr:PutImage and others on it: `trainyard access {stack}` prints them",
    ),
    NO_REPOSITORY,
    NOT_BUILT,
    UNREACHABLE,
)
# The repository and its parent component: the engine makes a targeted resource only together with its parents.
_TARGETS = ("**::trainyard:aws-dl1:Storage::storage", "**::repository")
_LOGIN = "Check the credentials (AWS_PROFILE) and the network"
_WITHOUT_EFA = "This image has no libraries for EFA, so its nodes use TCP: --base names an image that has them"
# On a base that a vendor publishes for its accelerators.
ON_VENDORS_BASE = IMAGES / "vendor" / "Dockerfile"


def registry_address(account: str, plan: Plan) -> str:
    return f"{account}.dkr.ecr.{plan.region}.amazonaws.com/{plan.registry.repository}"


def read_account(session: Session) -> str:
    return str(_ask_for_image(lambda: session.account, "Ask AWS which account this is"))


def look_up_ecr_image(session: Session, plan: Plan, image: WantedImage) -> RegisteredImage | None:
    """The image in the registry. None if the address is not in this account's registry in this region."""
    if image.host != registry_address(session.account, plan).partition("/")[0]:
        return None
    client = session.client("ecr", plan.region)
    repository = _unless_unknown(lambda: client.describe_repositories(repositoryNames=[image.path])["repositories"][0])
    if repository is None:
        return RegisteredImage(False)
    wanted = {"repositoryName": image.path, "imageIds": [{"imageTag": image.tag}]}
    found = _unless_unknown(lambda: client.describe_images(**wanted)["imageDetails"][0])
    immutable = str(repository.get("imageTagMutability", "")).startswith("IMMUTABLE")
    return RegisteredImage(True, immutable, str(found["imageDigest"]) if found else "")


def repository_command(plan: Plan) -> str:
    """The command that makes a stack's repository before the rest of the stack."""
    return neutral.targeted_up(plan, _TARGETS)


def read_ecr_password(session: Session, plan: Plan) -> str:
    """A token for the registry, which is valid for twelve hours."""
    answer = _ask_for_image(
        lambda: session.client("ecr", plan.region).get_authorization_token()["authorizationData"][0],
        "Ask ECR for a login",
    )
    return base64.b64decode(answer["authorizationToken"]).decode().partition(":")[2]


def _unless_unknown(read: Callable[[], Any]) -> Any:
    """The response, or None if ECR does not know the image or repository."""
    try:
        return read()
    except Exception as error:
        if code_of(error) in ("RepositoryNotFoundException", "ImageNotFoundException"):
            return None
        raise


def _ask_for_image(call: Callable[[], Any], what: str) -> Any:
    try:
        return call()
    except ProviderError as error:
        raise ImageError(f"{error.cause}\n{error.remedy or _LOGIN}") from None
    except Exception as error:
        refused = aws_refusal(what, error)
        raise ImageError(f"{refused.cause}\n{refused.remedy or _LOGIN}") from None


def aws_recipe(job: AwsJobPlan, gpu: bool | None) -> Recipe:
    """The recipe of a job's image: that of its framework, or a vendor's base for accelerators that need one. Nodes
    bring the launcher along, so a vendor's base needs nothing of trainyard."""
    machine, accelerator = aws_machine(job.shape.name), accelerator_of_machine(job.shape.name)
    if machine is None or accelerator is None or not accelerator.base:
        has_gpu = bool(machine and machine.accelerators)
        recipe = recipe_of_framework(job.framework, job.strategy, has_gpu if gpu is None else gpu)
        return replace(recipe, remark=_WITHOUT_EFA if job.cluster.efa and len(job.cluster.nodes) > 1 else "")
    if gpu is not None:
        raise ImageError(f"{job.name}: {machine.name} has {accelerator.words}\nRemove --gpu or --no-gpu")
    release, releases = job.cluster.release, accelerator.releases
    software = f"{accelerator.words} {release}" if releases else accelerator.words
    arguments = {"MODULES": f"torch, {accelerator.imports}", "SUMMARY": f"PyTorch on {accelerator.words}"}
    if releases and release not in releases:
        lacks = f"{job.name}: no image of the software {software} is known here\nName it: --base REGISTRY/IMAGE:TAG"
        return Recipe(software, ON_VENDORS_BASE, arguments, lacks)
    base = accelerator.base.format(release=release, torch=releases.get(release))
    return Recipe(software, ON_VENDORS_BASE, {"BASE": base, **arguments})


class AwsImages:
    """Implements `components.platform.images.ImagePlatform` for one region and one caller."""

    def __init__(self, plan: AwsDl1Plan, session: Session) -> None:
        self._plan, self._session = plan, session

    def wanted_images(
        self, plan: Plan, namespace: str, registry: str, only: str | None, dry_run: bool
    ) -> tuple[list[WantedImage], list[str]]:
        if namespace:
            raise ImageError("addresses of ECR have no namespace\nRemove --namespace")
        asks = any("${registry}" in job.image for job in plan.jobs.values())
        address = registry or (self._registry(dry_run) if asks else "")
        return neutral.images_to_build(plan, {"registry": address}, lambda job: "", only)

    def _registry(self, dry_run: bool) -> str:
        plan = self._plan
        neutral.refuse_borrowed_registry(plan)
        known = plan.account or (UNKNOWN_ACCOUNT if dry_run else read_account(self._session))
        return registry_address(known, plan)

    def recipe(self, job: JobPlan, gpu: bool | None) -> Recipe:
        return aws_recipe(aws_dl1_job(job), gpu)

    def is_arm(self, shape: str) -> bool:
        return False

    def judge(self, plan: Plan, image: WantedImage, overwrite: bool) -> str:
        if self._session.endpoint:
            raise ImageError(
                "the local AWS has no registry that container tools could push to\n"
                "Its nodes run code in environments of this machine: push when you deploy to AWS"
            )
        try:
            found = look_up_ecr_image(self._session, plan, image)
        except Exception as error:
            return str(aws_refusal("Ask ECR what it has", error)).partition("\n")[0]
        if found is not None:
            neutral.require_harmless_push(image.path, image.tag, found, overwrite, repository_command(plan))
        return ""

    def user_of(self, image: WantedImage) -> str:
        return USER

    def by_hand(self, login: str) -> str:
        return f"without credentials of AWS here, log in first: {_login_command(self._plan, login)}"

    def login(self, place: Endpoint) -> tuple[str, str]:
        return USER, read_ecr_password(self._session, self._plan)

    def explain_failure(self, output: str, plan: Plan, image: WantedImage, login: str) -> ImageError:
        login, make = _login_command(plan, login), repository_command(plan)
        return explain_failed_push(output, PUSH_FAILURES, plan, image, login=login, make=make)


def _login_command(plan: Plan, login: str) -> str:
    return f"aws ecr get-login-password --region {plan.region} | {login}"


def aws_images(plan: Plan, environment: Mapping[str, str]) -> AwsImages:
    return AwsImages(aws_dl1_plan(plan), Session.of({"region": plan.region}, environment))


PLATFORM_IMAGES = PlatformImages(aws_images)
