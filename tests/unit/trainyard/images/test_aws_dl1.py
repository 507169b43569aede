# SPDX-License-Identifier: Apache-2.0
"""Images for AWS's machines: which recipe and base, and why a push to ECR fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.tables import table
from components.aws.client.images import ON_VENDORS_BASE, aws_images
from components.aws.stack import Cluster
from components.platform.images import PROJECT, Additions, ImageError, WantedImage, recipe_of_framework
from schemas.model import Shape
from tests.support import dockerfiles
from tests.support.aws_plans import ACCOUNT, aws_job, aws_plan
from trainyard.images.build_push import BuildOptions, choose_recipe

RELEASES = table("aws_accelerators")["gaudi"]["releases"]
HOST = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com"
IMAGE = WantedImage(f"{HOST}/vision/dev/training:1.0", ())


@pytest.mark.parametrize("release", RELEASES)
def test_the_base_is_gaudis_own_image_of_the_jobs_release(release: str) -> None:
    plan = aws_plan(jobs={"resnet": aws_job(cluster=Cluster(release=release))})
    found = aws_images(plan, {}).recipe(plan.jobs["resnet"], None)
    base = f"vault.habana.ai/gaudi-docker/{release}/ubuntu22.04/habanalabs/pytorch-installer-{RELEASES[release]}:latest"
    assert (found.title, found.arguments["BASE"]) == (f"Gaudi {release}", base)
    last = dockerfiles.read(PROJECT / ON_VENDORS_BASE, found.arguments).stages[-1]
    assert last.base == base
    assert 'python3 -c "import torch, habana_frameworks' in str(last.all("RUN"))


def test_a_release_without_a_known_image_is_refused_unless_a_base_is_named() -> None:
    plan = aws_plan(jobs={"resnet": aws_job(cluster=Cluster(release="9.9.9"))})
    platform, one = aws_images(plan, {}), WantedImage("registry/train:1", (plan.jobs["resnet"],))
    given = BuildOptions(None, {}, Additions(code=PROJECT), None, True)
    with pytest.raises(ImageError, match=r"no image of the software Gaudi 9\.9\.9 is known here\nName it: --base"):
        choose_recipe(one, given, platform, print)
    named = BuildOptions(None, {"BASE": "registry/gaudi:9.9.9"}, Additions(code=PROJECT), None, True)
    assert choose_recipe(one, named, platform, print).dockerfile == ON_VENDORS_BASE


@pytest.mark.parametrize(("machine", "gpu"), [("p5.48xlarge", True), ("g6e.xlarge", True), ("c7i.xlarge", False)])
def test_machines_without_a_vendor_s_base_take_the_recipes_of_frameworks(machine: str, gpu: bool) -> None:
    plan = aws_plan(jobs={"resnet": aws_job(shape=Shape(machine))})
    platform, job = aws_images(plan, {}), plan.jobs["resnet"]
    for asked, wanted in ((None, gpu), (not gpu, not gpu)):
        found = platform.recipe(job, asked)
        assert replace(found, remark="") == recipe_of_framework("pytorch", None, wanted)
        assert ("no libraries for EFA" in found.remark) is bool(job.cluster.efa and len(job.cluster.nodes) > 1)


def test_trainium_s_base_is_the_vendor_s_image() -> None:
    plan = aws_plan()
    found = aws_images(plan, {}).recipe(replace(plan.jobs["resnet"], shape=Shape("trn1.32xlarge")), None)
    assert found.arguments["BASE"].startswith("public.ecr.aws/neuron/pytorch-training-neuronx:")
    assert (found.title, found.lacks) == ("Trainium", "")
    last = dockerfiles.read(PROJECT / ON_VENDORS_BASE, found.arguments).stages[-1]
    assert 'python3 -c "import torch, torch_xla' in str(last.all("RUN"))


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
