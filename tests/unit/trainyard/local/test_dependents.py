# SPDX-License-Identifier: Apache-2.0
"""A stack depends on another by the resource itself, not by an equal name in another cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from catalog.platforms import require_capability
from components.platform.local import PROJECT_NAME, LocalPlatform, Row, State
from trainyard.local.stack_states import dependent_stacks

NAME = "vision-dev-training"
GROUP_ID = "ocid1.dynamicgroup.oc1..aaaaaaaagroup"
ECR = "123456789012.dkr.ecr.us-east-1.amazonaws.com/vision/dev/training"


def made(token: str, identity: str, **outputs: Any) -> Row:
    return {"type": token, "id": identity, "custom": True, "urn": f"urn:pulumi::{token}::it", "outputs": outputs}


BUCKET = made("oci:ObjectStorage/bucket:Bucket", f"n/space/b/{NAME}", name=NAME, namespace="space")
REPOSITORY = made(
    "oci:Artifacts/containerRepository:ContainerRepository", "ocid1.containerrepo.oc1.iad.aaaaaaaarepo",
    displayName="vision/dev/training", namespace="space",
)  # fmt: skip
GROUP = made("oci:Identity/dynamicGroup:DynamicGroup", GROUP_ID, name="vision-dev-runs")
SUBNET = made("oci:Core/subnet:Subnet", "ocid1.subnet.oc1.iad.aaaaaaaasubnet", displayName="vision-dev-nodes")
S3 = made("aws:s3/bucket:Bucket", NAME, bucket=NAME)
ECR_ROW = made("aws:ecr/repository:Repository", "vision/dev/training", name="vision/dev/training", repositoryUrl=ECR)
LOG_GROUP = made("aws:cloudwatch/logGroup:LogGroup", NAME, name=NAME)
ROLE = made("aws:iam/role:Role", "vision-dev-nodes", name="vision-dev-nodes")
VPC = made("aws:ec2/vpc:Vpc", "vpc-0123456789abcdef0", tags={"Name": "vision-dev"})

OCI: Mapping[str, Any] = {
    "bucket": NAME, "bucketUri": f"oci://{NAME}@space", "imagePushAddress": "iad.ocir.io/space/vision/dev/training",
    "runsGroup": "vision-dev-runs", "subnetId": SUBNET["id"],
}  # fmt: skip
AWS: Mapping[str, Any] = {
    "account": "123456789012", "region": "us-east-1", "bucket": NAME, "bucketUri": f"s3://{NAME}",
    "imagePushAddress": ECR, "logGroup": NAME, "nodesRole": "vision-dev-nodes", "vpcId": VPC["id"],
}  # fmt: skip


def state(stack: str, package: str, outputs: Mapping[str, Any], inputs: Mapping[str, Any] | None = None) -> State:
    region = {"oci": "us-ashburn-1", "aws": "us-east-1"}[package]
    provider = {"type": f"pulumi:providers:{package}", "inputs": {"region": region}, "urn": "urn:provider"}
    job = {"type": "any:of:Them", "id": "1", "custom": True, "urn": "urn:job", "inputs": inputs or {}}
    return State(PROJECT_NAME, stack, [provider, {"type": "pulumi:pulumi:Stack", "outputs": outputs}, job])


def needed(name: str, own: State, other: State, *going: Row) -> tuple[str, ...]:
    found = dependent_stacks(own, [own, other], going, require_capability(name, LocalPlatform))
    return found[0].on if found else ()


def test_stacks_that_differ_only_in_platform_need_nothing_of_each_other() -> None:
    oci, aws = state("one", "oci", OCI), state("two", "aws", AWS)
    assert needed("oci", oci, aws, BUCKET, REPOSITORY, GROUP, SUBNET) == ()
    assert needed("aws-dl1", aws, oci, S3, ECR_ROW, LOG_GROUP, ROLE, VPC) == ()


@pytest.mark.parametrize("row", [BUCKET, REPOSITORY, GROUP], ids=lambda row: row["type"])
def test_a_stack_of_oci_needs_what_it_shares(row: Row) -> None:
    assert needed("oci", state("one", "oci", OCI), state("two", "oci", OCI), row)


@pytest.mark.parametrize("row", [S3, ECR_ROW, LOG_GROUP, ROLE], ids=lambda row: row["type"])
def test_a_stack_of_aws_needs_what_it_shares(row: Row) -> None:
    assert needed("aws-dl1", state("one", "aws", AWS), state("two", "aws", AWS), row)


def test_a_name_in_an_input_is_a_dependency_but_not_a_longer_one() -> None:
    own = state("one", "oci", OCI)
    for image, needs in (("training:1.0", True), ("training@sha256:0", True), ("training-two:1.0", False)):
        job = {"environment": {"image": f"iad.ocir.io/space/vision/dev/{image}"}, "subnet": SUBNET["id"]}
        assert needed("oci", own, state("two", "oci", {}, job), REPOSITORY) == (
            ("repository vision/dev/training",) if needs else ()
        )
        assert needed("oci", own, state("two", "oci", {}, job), SUBNET) == ("subnet vision-dev-nodes",)


def test_a_log_group_of_another_region_has_only_the_name() -> None:
    there = state("two", "aws", {**AWS, "region": "us-west-2"})
    assert needed("aws-dl1", state("one", "aws", AWS), there, LOG_GROUP) == ()
