# SPDX-License-Identifier: Apache-2.0
"""The deployer's least policy: no permissions for resources that are not made, on other roles, or on machines of
others."""

from __future__ import annotations

import pytest

from catalog.tables import table
from components.aws.access_report import deployer_policies
from components.aws.plan import AwsDl1Plan
from components.aws.stack import AwsAccess, AwsNetwork, AwsUsers, Cluster
from components.aws.statements import AwsStatement
from components.aws.types import SERVED_TYPES
from components.aws.types.deployer_actions import granted_on
from components.aws.types.functions import FUNCTIONS
from components.aws.types.provider_calls import aws_type_calls
from schemas.model import Bucket, Registry
from tests.support.aws_plans import ACCOUNT, aws_job, aws_plan


def statements(plan: AwsDl1Plan) -> list[AwsStatement]:
    return [one for policy in deployer_policies(plan) for one in policy.statements]


def actions(plan: AwsDl1Plan) -> set[str]:
    return {action for one in statements(plan) for action in one.actions}


def test_only_the_nodes_role_is_passed_on_and_only_to_instances() -> None:
    [passed] = [one for one in statements(aws_plan()) if "iam:PassRole" in one.actions]
    assert passed.resources == (f"arn:aws:iam::{ACCOUNT}:role/vision-dev-nodes",)
    assert passed.condition == {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
    [named] = [
        one
        for one in statements(aws_plan(access=AwsAccess(users=AwsUsers(group="a"), runs="company-nodes")))
        if "iam:PassRole" in one.actions
    ]
    assert named.resources == (f"arn:aws:iam::{ACCOUNT}:role/company-nodes",)


def test_what_ec2_changes_has_the_stacks_tag_or_is_named() -> None:
    """Image, disks and interfaces are parts of an instance, which itself gets the tag."""
    for network in (AwsNetwork(nat=True), AwsNetwork(subnet="subnet-0a", security_group="sg-0b")):
        for one in statements(aws_plan(network=network)):
            if any(action.startswith("ec2:") for action in one.actions) and not one.everywhere:
                keys = {key for operator in one.condition.values() for key in operator}
                parts = {"instance", "network-interface", "volume", "image"}
                kinds = {arn.rpartition(":")[2].partition("/")[0] for arn in one.resources}
                assert (
                    any("Tag/stack" in key for key in keys)
                    or kinds <= parts
                    or not any("*" in arn for arn in one.resources)
                ), one


def test_policies_are_attached_only_if_the_stack_made_them_or_aws_keeps_them() -> None:
    for mode, managed in {
        "least-privilege": set(),
        "documented": {
            "AmazonEC2ContainerRegistryPowerUser", "AmazonEC2ContainerRegistryPullOnly", "AmazonS3FullAccess",
            "AmazonSSMFullAccess", "AmazonSSMManagedInstanceCore", "CloudWatchLogsFullAccess",
            "CloudWatchReadOnlyAccess",
        },
        "proof-of-concept": {"AdministratorAccess"},
    }.items():  # fmt: skip
        plan = aws_plan(access=AwsAccess(mode=mode, users=AwsUsers(group="scientists")))  # type: ignore[arg-type]
        attaching = [
            statement
            for statement in statements(plan)
            if {"iam:AttachRolePolicy", "iam:AttachGroupPolicy"} & {*statement.actions}
        ]
        arns = [arns for statement in attaching for keys in statement.condition.values() for arns in keys.values()]
        found = {arn for listed in arns for arn in ([listed] if isinstance(listed, str) else listed)}
        assert found == {
            f"arn:aws:iam::{ACCOUNT}:policy/vision-dev-*", *(f"arn:aws:iam::aws:policy/{name}" for name in managed)
        }  # fmt: skip


def test_a_bucket_that_is_kept_cannot_be_deleted() -> None:
    assert "s3:DeleteBucket" not in actions(aws_plan(bucket=Bucket(keep=True)))
    assert "s3:DeleteBucket" in actions(aws_plan(bucket=Bucket(keep=False)))


def test_a_subnet_in_an_existing_vpc_takes_no_right_to_make_networks() -> None:
    plan = aws_plan(network=AwsNetwork(vpc="vpc-0a", subnet_cidr="10.0.1.0/24"))
    assert "ec2:CreateSubnet" in actions(plan)
    assert not actions(plan) & {"ec2:CreateVpc", "ec2:DeleteVpc", "ec2:ModifyVpcAttribute"}
    [existing] = [one for one in statements(plan) if one.resources == (f"arn:aws:ec2:us-east-1:{ACCOUNT}:vpc/vpc-0a",)]
    assert "ec2:CreateSubnet" in existing.actions


def test_who_makes_only_clusters_needs_no_right_to_make_anything_else() -> None:
    plan = aws_plan(
        network=AwsNetwork(subnet="subnet-0a", security_group="sg-0b"),
        access=AwsAccess(users=AwsUsers(group="scientists"), existing=True, runs="company-nodes"),
        bucket=Bucket(existing="company-data"),
        registry=Registry(existing="company/images"),
    )
    assert "ec2:RunInstances" in actions(plan)
    made = {"iam:CreateRole", "iam:CreatePolicy", "iam:AttachRolePolicy", "s3:CreateBucket", "ecr:CreateRepository"}
    assert not actions(plan) & {*made, "ec2:CreateSubnet", "ec2:AuthorizeSecurityGroupIngress", "ec2:CreateVpc"}


@pytest.mark.parametrize(
    "plan",
    [
        aws_plan(network=AwsNetwork(nat=True)),
        aws_plan(jobs={"resnet": aws_job(cluster=Cluster(ami="ami-0a1b2c3d", efa=1, public_address="elastic"))}),
    ],
    ids=["the address of NAT", "the address of a node"],
)
def test_an_elastic_address_is_read_with_its_attributes(plan: AwsDl1Plan) -> None:
    assert "ec2:DescribeAddressesAttribute" in actions(plan)
    assert "ec2:DescribeAddressesAttribute" not in actions(aws_plan())


def test_an_existing_registry_is_read_with_its_images() -> None:
    assert "ecr:DescribeImages" in actions(aws_plan(registry=Registry(existing="company/images")))


def test_private_names_of_endpoints_take_a_zone_of_route_53() -> None:
    assert aws_plan().network.endpoints
    [zones] = [one for one in statements(aws_plan()) if "route53:AssociateVPCWithHostedZone" in one.actions]
    assert zones.resources == ("arn:aws:route53:::hostedzone/*",)
    for network in (AwsNetwork(nat=True), AwsNetwork(vpc="vpc-0a", subnet_cidr="10.0.1.0/24")):
        assert "route53:AssociateVPCWithHostedZone" not in actions(aws_plan(network=network))


def test_a_secret_that_others_have_rotated_can_be_deleted() -> None:
    """The provider takes the stages from an old version before it forgets it."""
    assert "secretsmanager:UpdateSecretVersionStage" in actions(aws_plan())


def test_tags_of_a_bucket_are_read_and_changed_as_s3_control_does() -> None:
    tagging = {"s3:ListTagsForResource", "s3:TagResource", "s3:UntagResource"}
    assert tagging <= actions(aws_plan())
    assert not tagging & actions(aws_plan(bucket=Bucket(existing="company-data")))


def test_code_goes_with_all_its_versions() -> None:
    assert {"s3:ListBucketVersions", "s3:DeleteObject", "s3:DeleteObjectVersion"} <= actions(aws_plan())


def test_zones_are_looked_up_also_for_a_stack_without_jobs() -> None:
    assert "ec2:DescribeInstanceTypeOfferings" in actions(aws_plan(jobs={}))


def test_a_repository_that_is_kept_cannot_be_deleted() -> None:
    assert "ecr:DeleteRepository" not in actions(aws_plan(registry=Registry(keep=True)))
    assert "ecr:DeleteRepository" in actions(aws_plan(registry=Registry(keep=False)))


def test_every_call_of_every_type_has_its_resources() -> None:
    """Includes types and inputs that our stacks do not use, so that new ones are covered."""
    for token, row in SERVED_TYPES.items():
        for call in aws_type_calls(token).every_call():
            assert granted_on(f"{row.service}:{call}")


def test_what_a_deployer_makes_is_named_by_rows_of_types_and_their_inputs() -> None:
    for kind, row in table("aws_dl1_access")["deployer"].items():
        for token, inputs in {**row.get("makes", {}), **row.get("deletes", {})}.items():
            calls, further = aws_type_calls(token), SERVED_TYPES[token].provider.actions
            assert set(inputs.split()) <= {*calls.with_input, *calls.when, *further}, (kind, token)
        assert set(row.get("looks_up", ())) <= set(FUNCTIONS), kind


def test_who_makes_only_the_place_starts_no_machine() -> None:
    assert not actions(aws_plan(jobs={})) & {"ec2:RunInstances", "ec2:StartInstances", "ssm:SendCommand"}
