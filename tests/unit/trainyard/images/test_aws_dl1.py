# SPDX-License-Identifier: Apache-2.0
"""Images for Gaudi: which base, and why a push to ECR fails."""

from __future__ import annotations

import pytest

from catalog.tables import table
from components.aws.client.images import DOCKERFILE, aws_images
from components.aws.stack import Cluster
from components.platform.images import PROJECT, ImageError, WantedImage
from tests.support import dockerfiles
from tests.support.aws_plans import ACCOUNT, aws_job, aws_plan

HOST = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com"
IMAGE = WantedImage(f"{HOST}/vision/dev/training:1.0", ())


@pytest.mark.parametrize("release", table("aws_dl1")["shapes"]["dl1.24xlarge"]["releases"])
def test_the_base_is_gaudis_own_image_of_the_jobs_release(release: str) -> None:
    plan = aws_plan(jobs={"resnet": aws_job(cluster=Cluster(release=release))})
    found = aws_images(plan, {}).recipe(plan.jobs["resnet"], None)
    torch = table("aws_dl1")["shapes"]["dl1.24xlarge"]["releases"][release]
    base = f"vault.habana.ai/gaudi-docker/{release}/ubuntu22.04/habanalabs/pytorch-installer-{torch}:latest"
    assert found.arguments == {"BASE": base}
    last = dockerfiles.read(PROJECT / DOCKERFILE, found.arguments).stages[-1]
    assert last.base == base


def test_a_release_without_a_known_image_is_refused() -> None:
    plan = aws_plan(jobs={"resnet": aws_job(cluster=Cluster(release="9.9.9"))})
    with pytest.raises(ImageError, match=r"no image of the Gaudi software 9\.9\.9 is known here\nName it: --base"):
        aws_images(plan, {}).recipe(plan.jobs["resnet"], None)


def test_options_of_other_machines_are_refused() -> None:
    plan = aws_plan()
    with pytest.raises(ImageError, match="Remove --gpu or --no-gpu"):
        aws_images(plan, {}).recipe(plan.jobs["resnet"], True)
    with pytest.raises(ImageError, match="Remove --namespace"):
        aws_images(plan, {}).wanted_images(plan, "acme", "", None, True)


@pytest.mark.parametrize(
    ("said", "cause", "remedy"),
    [
        ("no basic auth credentials", "got no login", "aws ecr get-login-password --region us-east-1 | docker login"),
        ("denied: Your authorization token has expired. Reauthenticate and try again.", "got no login", "docker login"),
        (
            "denied: User: arn:aws:iam::123456789012:user/ann is not authorized to perform: ecr:InitiateLayerUpload",
            "may not push to vision/dev/training",
            "`trainyard access vision-dev`",
        ),
        (
            "name unknown: The repository with name 'vision/dev/training' does not exist in the registry",
            "does not exist",
            "pulumi up -s vision-dev --target '**::trainyard:aws-dl1:Storage::storage' --target '**::repository'",
        ),
        ("tag invalid: The image tag '1.0' already exists in the repository and cannot be overwritten because the "
         "repository is immutable.", "immutable and has 1.0 already", "new tag"),
        ("no such host", "cannot be reached", "Check the network"),
        ("something new", "the push failed", "last lines"),
    ],
)  # fmt: skip
def test_why_a_push_fails(said: str, cause: str, remedy: str) -> None:
    plan = aws_plan()
    platform = aws_images(plan, {})
    text = str(platform.explain_failure(said, plan, IMAGE, f"docker login {HOST} --username AWS --password-stdin"))
    assert cause in text
    assert remedy in text
