# SPDX-License-Identifier: Apache-2.0
"""The local AWS lets the printed deployer do what its stack needs, and refuses what would give it or its nodes more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from components.aws.access_report import deployer_policies
from components.aws.plan import AwsDl1Plan
from components.aws.stack import AwsAccess, AwsNetwork, AwsUsers, Cluster
from components.aws.statements import TRUST
from schemas.model import AccessMode, Uses
from tests.support.aws_inside import AwsInside, Sender, aws_inside
from tests.support.aws_plans import ACCOUNT, aws_job, aws_plan

IMAGE, ROLE = "ami-0d11a1b2c3d4e5f60", "vision-dev-nodes"
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/company-boundary"
SPOT: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}}


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsInside]:
    with aws_inside(tmp_path_factory.mktemp("aws")) as made:
        yield made


def become_deployer(inside: AwsInside, plan: AwsDl1Plan) -> None:
    """Gives the user the policies that `trainyard access` prints for the plan's deployer, and no others."""
    iam = inside.client(inside.deployer, "iam")
    for attached in iam.list_attached_user_policies(UserName="user")["AttachedPolicies"]:
        iam.detach_user_policy(UserName="user", PolicyArn=attached["PolicyArn"])
        iam.delete_policy(PolicyArn=attached["PolicyArn"])
    for policy in deployer_policies(plan):
        made = iam.create_policy(PolicyName=policy.name, Path="/d/", PolicyDocument=json.dumps(policy.document))
        iam.attach_user_policy(UserName="user", PolicyArn=made["Policy"]["Arn"])


def answer(inside: AwsInside, service: str, operation: str, sender: Sender | None = None, **parameters: Any) -> str:
    """The code with which a call of the user is refused; "" if it succeeds."""
    try:
        inside.ask(sender or inside.user, service, operation, **parameters)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def launch(inside: AwsInside, **more: Any) -> str:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "stack", "Value": "vision-dev"}]}]
    named: dict[str, Any] = {
        "ImageId": IMAGE,
        "InstanceType": "t3.micro",
        "MinCount": 1,
        "MaxCount": 1,
        "TagSpecifications": tags,
    }
    return answer(inside, "ec2", "RunInstances", **named, **more)


def place_of_stack(inside: AwsInside, stack: str, number: int) -> dict[str, Any]:
    """A subnet and a security group with the tag of a stack."""

    def tags(kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": [{"Key": "stack", "Value": stack}]}]

    ec2 = inside.client(inside.deployer, "ec2")
    vpc = ec2.create_vpc(CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"]
    where = {"CidrBlock": f"10.{number}.1.0/24", "AvailabilityZone": "us-east-1a"}
    subnet = ec2.create_subnet(VpcId=vpc, **where, TagSpecifications=tags("subnet"))
    group = ec2.create_security_group(
        GroupName=stack, Description=stack, VpcId=vpc, TagSpecifications=tags("security-group")
    )
    return {"SubnetId": subnet["Subnet"]["SubnetId"], "SecurityGroupIds": [group["GroupId"]]}


def test_machines_start_in_the_network_of_the_stack_that_gives_it_and_in_no_other(inside: AwsInside) -> None:
    become_deployer(inside, aws_plan(uses=Uses("organization/trainyard/vision-net", ("network",))))
    giving, other = place_of_stack(inside, "vision-net", 71), place_of_stack(inside, "vision-other", 72)
    assert launch(inside, **giving, DryRun=True) == "DryRunOperation"
    for key in giving:
        assert launch(inside, **{**giving, key: other[key]}, DryRun=True) == "UnauthorizedOperation", key


def test_a_rule_may_name_the_prefix_list_of_a_service_of_aws(inside: AwsInside) -> None:
    become_deployer(inside, aws_plan())
    lists = inside.ask(inside.deployer, "ec2", "DescribeManagedPrefixLists")["PrefixLists"]
    of_s3 = next(found["PrefixListId"] for found in lists if found["PrefixListName"].endswith(".s3"))
    tags = [{"ResourceType": "security-group-rule", "Tags": [{"Key": "stack", "Value": "vision-dev"}]}]
    rule = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "PrefixListIds": [{"PrefixListId": of_s3}]}
    for stack, number, code in (("vision-dev", 75, ""), ("vision-other", 76, "UnauthorizedOperation")):
        [group] = place_of_stack(inside, stack, number)["SecurityGroupIds"]
        named: dict[str, Any] = {"GroupId": group, "IpPermissions": [rule], "TagSpecifications": tags}
        assert answer(inside, "ec2", "AuthorizeSecurityGroupEgress", **named) == code


def test_the_first_spot_launch_of_an_account_makes_its_role_in_the_deployers_name(inside: AwsInside) -> None:
    place = place_of_stack(inside, "vision-dev", 73)
    for spot, code in ((False, "AuthFailure.ServiceLinkedRoleCreationNotPermitted"), (True, ""), (False, "")):
        become_deployer(inside, aws_plan(jobs={"resnet": aws_job(cluster=Cluster(ami=IMAGE, spot=spot))}))
        assert launch(inside, **place) == "", "on demand takes no role"
        assert launch(inside, **place, **SPOT) == code
    role = inside.ask(inside.deployer, "iam", "GetRole", RoleName="AWSServiceRoleForEC2Spot")["Role"]
    assert role["Arn"] == f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"


@pytest.mark.parametrize(
    ("mode", "own"), [("documented", "AmazonS3FullAccess"), ("proof-of-concept", "AdministratorAccess")]
)
def test_a_deployer_attaches_the_policies_of_its_mode_and_no_others_of_aws(
    inside: AwsInside, mode: AccessMode, own: str
) -> None:
    become_deployer(inside, aws_plan(access=AwsAccess(mode=mode, users=AwsUsers(role="scientist"))))
    for role in (ROLE, "scientist"):
        inside.ask(inside.deployer, "iam", "CreateRole", RoleName=role, AssumeRolePolicyDocument=json.dumps(TRUST))
    try:
        for policy in ("IAMFullAccess", "AdministratorAccess", "AmazonS3FullAccess"):
            for role in (ROLE, "scientist"):
                arn = f"arn:aws:iam::aws:policy/{policy}"
                may = policy == own and (role == ROLE or mode == "documented")
                code = answer(inside, "iam", "AttachRolePolicy", RoleName=role, PolicyArn=arn)
                assert code == ("" if may else "AccessDenied"), (policy, role)
    finally:
        remove_roles(inside, ROLE, "scientist")


def remove_roles(inside: AwsInside, *names: str) -> None:
    iam = inside.client(inside.deployer, "iam")
    for name in names:
        for attached in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
            iam.detach_role_policy(RoleName=name, PolicyArn=attached["PolicyArn"])
        iam.delete_role(RoleName=name)


def test_a_deployer_within_a_boundary_gives_no_role_more(inside: AwsInside) -> None:
    access = AwsAccess(users=AwsUsers(group="scientists"), permissions_boundary=BOUNDARY)
    become_deployer(inside, aws_plan(access=access))
    anything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    of_s3 = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
    for name, document in (("company-boundary", of_s3), ("other", anything)):
        made = inside.ask(inside.deployer, "iam", "CreatePolicy", PolicyName=name, PolicyDocument=json.dumps(document))
        assert made["Policy"]["Arn"].endswith(name)
    person = {"AWS": f"arn:aws:iam::{ACCOUNT}:user/deployer"}
    trust = {**TRUST, "Statement": [{"Effect": "Allow", "Principal": person, "Action": "sts:AssumeRole"}]}
    role: dict[str, Any] = {"RoleName": ROLE, "AssumeRolePolicyDocument": json.dumps(trust)}
    other = BOUNDARY.replace("company-boundary", "other")
    assert answer(inside, "iam", "CreateRole", **role) == "AccessDenied"
    assert answer(inside, "iam", "CreateRole", **role, PermissionsBoundary=other) == "AccessDenied"
    assert answer(inside, "iam", "CreateRole", **role, PermissionsBoundary=BOUNDARY) == ""
    assert answer(inside, "iam", "PutRolePermissionsBoundary", RoleName=ROLE, PermissionsBoundary=other) != ""
    assert answer(inside, "iam", "DeleteRolePermissionsBoundary", RoleName=ROLE) == "AccessDenied"
    assert answer(inside, "iam", "CreatePolicyVersion", PolicyArn=BOUNDARY, PolicyDocument=json.dumps(anything)) != ""

    # Whatever the deployer attaches, the role does what its boundary has.
    own: dict[str, Any] = {"PolicyName": "vision-dev-nodes", "PolicyDocument": json.dumps(anything)}
    assert answer(inside, "iam", "CreatePolicy", **own) == ""
    arn = f"arn:aws:iam::{ACCOUNT}:policy/vision-dev-nodes"
    assert answer(inside, "iam", "AttachRolePolicy", RoleName=ROLE, PolicyArn=arn) == ""
    session = inside.ask(
        inside.deployer, "sts", "AssumeRole", RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{ROLE}", RoleSessionName="node"
    )["Credentials"]
    node = Sender(session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"])
    assert answer(inside, "s3", "ListBuckets", node) == ""
    assert answer(inside, "iam", "ListRoles", node) == "AccessDenied"

    # A role without the boundary gets nothing from this deployer, until it has it.
    inside.ask(inside.deployer, "iam", "DetachRolePolicy", RoleName=ROLE, PolicyArn=arn)
    inside.ask(inside.deployer, "iam", "DeleteRolePermissionsBoundary", RoleName=ROLE)
    assert answer(inside, "iam", "AttachRolePolicy", RoleName=ROLE, PolicyArn=arn) == "AccessDenied"
    assert answer(inside, "iam", "PutRolePermissionsBoundary", RoleName=ROLE, PermissionsBoundary=BOUNDARY) == ""
    assert answer(inside, "iam", "AttachRolePolicy", RoleName=ROLE, PolicyArn=arn) == ""
    remove_roles(inside, ROLE)


def test_an_existing_network_is_named_by_its_ids(inside: AwsInside) -> None:
    place = place_of_stack(inside, "company", 74)
    subnet, group = place["SubnetId"], place["SecurityGroupIds"][0]
    become_deployer(inside, aws_plan(network=AwsNetwork(subnet=subnet, security_group=group)))
    assert launch(inside, **place, DryRun=True) == "DryRunOperation"
