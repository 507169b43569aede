# SPDX-License-Identifier: Apache-2.0
"""The calls that `trainyard image push` makes to ECR before it pushes, on the local AWS."""

from __future__ import annotations

import json

import pytest

from components.aws.client import images
from components.aws.client.images import aws_images
from components.platform.images import ImageError, RegisteredImage, WantedImage
from components.s3 import Session
from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients
from tests.support.aws_plans import ACCOUNT, REGION, aws_plan

ADDRESS = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/vision/dev/training"
MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json"})


@pytest.fixture(scope="module")
def session(shared_cloud: Cloud) -> Session:
    return Session.of({"region": REGION}, shared_cloud.env)


def test_an_existing_image_in_ecr_is_found(aws: AwsClients, session: Session) -> None:
    plan, image = aws_plan(), WantedImage(f"{ADDRESS}:1.0", ())
    assert images.look_up_ecr_image(session, plan, image) == RegisteredImage(False)
    aws["ecr"].create_repository(repositoryName="vision/dev/training", imageTagMutability="IMMUTABLE")
    assert images.look_up_ecr_image(session, plan, image) == RegisteredImage(True, immutable=True)
    put = {"repositoryName": "vision/dev/training", "imageManifest": MANIFEST, "imageTag": "1.0"}
    digest = aws["ecr"].put_image(**put)["image"]["imageId"]["imageDigest"]
    assert images.look_up_ecr_image(session, plan, image) == RegisteredImage(True, immutable=True, digest=digest)
    elsewhere = WantedImage("123456789013.dkr.ecr.us-west-2.amazonaws.com/vision:1.0", ())
    assert images.look_up_ecr_image(session, plan, elsewhere) is None


def test_without_an_account_in_the_stack_file_the_callers_account_is_used(shared_cloud: Cloud) -> None:
    plan = aws_plan(account=None)
    [image], remarks = aws_images(plan, shared_cloud.env).wanted_images(plan, "", "", None, False)
    assert image.address == f"{ADDRESS}:1.0"
    assert remarks == []
    [unasked], _ = aws_images(plan, {}).wanted_images(plan, "", "", None, True)
    assert unasked.address.startswith("<account>.dkr.ecr.us-east-1.amazonaws.com/")


def test_a_token_is_the_password_of_the_user_aws(session: Session) -> None:
    plan = aws_plan()
    assert images.read_ecr_password(session, plan)
    assert ":" not in images.read_ecr_password(session, plan)


def test_a_push_to_the_local_aws_is_refused_with_the_reason(shared_cloud: Cloud) -> None:
    plan = aws_plan()
    platform = aws_images(plan, shared_cloud.env)
    with pytest.raises(ImageError, match="the local AWS has no registry that container tools could push to"):
        platform.judge(plan, WantedImage(f"{ADDRESS}:1.0", ()), False)


def test_ecr_that_refuses_says_what_is_missing(shared_cloud: Cloud) -> None:
    nobody = Session.of({"region": REGION}, {**shared_cloud.env, "AWS_PROFILE": "nobody"})
    with pytest.raises(ImageError, match="No usable credentials for AWS"):
        images.read_account(nobody)
