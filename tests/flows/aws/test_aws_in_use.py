# SPDX-License-Identifier: Apache-2.0
"""A resource that another one uses cannot be deleted. The error has AWS's code. When nothing uses it any more, it
can."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.aws_clients import AwsClients, refused
from tests.support.waiting import eventually

IMAGE, TYPE, ZONE = "ami-0d11a1b2c3d4e5f60", "dl1.24xlarge", "us-east-1a"
ALLOW = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::team/*"}]})  # fmt: skip
TRUST = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]})  # fmt: skip


@pytest.fixture
def network(aws: AwsClients) -> Iterator[Mapping[str, str]]:
    """A network with a subnet, two groups and a gateway. The test takes it down."""
    ec2 = aws["ec2"]
    vpc = ec2.create_vpc(CidrBlock="10.6.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.6.1.0/24", AvailabilityZone=ZONE)["Subnet"]["SubnetId"]
    nodes, others = (
        ec2.create_security_group(VpcId=vpc, GroupName=name, Description=name)["GroupId"]
        for name in ("nodes", "others")
    )
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    yield {"vpc": vpc, "subnet": subnet, "nodes": nodes, "others": others, "gateway": gateway}
    assert refused(ec2.describe_vpcs, VpcIds=[vpc])[0] == "InvalidVpcID.NotFound"


def take_down(ec2: Any, network: Mapping[str, str]) -> None:
    """Deletes everything in the order that AWS needs. Each step is refused before the previous one is done."""
    violation = "DependencyViolation"
    mine = {"Filters": [{"Name": "vpc-id", "Values": [network["vpc"]]}]}
    (table,) = ec2.describe_route_tables(**mine)["RouteTables"]
    assert refused(ec2.delete_route_table, RouteTableId=table["RouteTableId"])[0] == violation
    groups = ec2.describe_security_groups(**mine)["SecurityGroups"]
    (default,) = (group["GroupId"] for group in groups if group["GroupName"] == "default")
    assert refused(ec2.delete_security_group, GroupId=default)[0] == "CannotDelete"
    code, message = refused(ec2.delete_vpc, VpcId=network["vpc"])
    assert (code, message) == (violation, f"The vpc '{network['vpc']}' has dependencies and cannot be deleted.")
    ec2.delete_subnet(SubnetId=network["subnet"])
    assert refused(ec2.delete_vpc, VpcId=network["vpc"])[0] == violation
    ec2.detach_internet_gateway(InternetGatewayId=network["gateway"], VpcId=network["vpc"])
    ec2.delete_internet_gateway(InternetGatewayId=network["gateway"])
    assert refused(ec2.delete_vpc, VpcId=network["vpc"])[0] == violation
    for group in ("nodes", "others"):
        ec2.delete_security_group(GroupId=network[group])
    ec2.delete_vpc(VpcId=network["vpc"])


def test_resources_of_an_instance_cannot_be_deleted(aws: AwsClients, network: Mapping[str, str]) -> None:
    ec2 = aws["ec2"]
    pairs = [{"GroupId": network["nodes"]}]
    ec2.authorize_security_group_ingress(GroupId=network["nodes"], IpPermissions=[
        {"IpProtocol": "-1", "UserIdGroupPairs": pairs}])  # fmt: skip
    ec2.authorize_security_group_ingress(GroupId=network["others"], IpPermissions=[
        {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "UserIdGroupPairs": pairs}])  # fmt: skip
    instance = ec2.run_instances(
        ImageId=IMAGE, InstanceType=TYPE, MinCount=1, MaxCount=1, SubnetId=network["subnet"],
        SecurityGroupIds=[network["nodes"]],
    )["Instances"][0]["InstanceId"]  # fmt: skip
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    ec2.associate_address(AllocationId=address, InstanceId=instance)
    interface = ec2.describe_network_interfaces(Filters=[{"Name": "subnet-id", "Values": [network["subnet"]]}])
    attempts = {
        "DependencyViolation": [
            lambda: ec2.delete_subnet(SubnetId=network["subnet"]),
            lambda: ec2.delete_security_group(GroupId=network["nodes"]),
            lambda: ec2.delete_vpc(VpcId=network["vpc"]),
            lambda: ec2.detach_internet_gateway(InternetGatewayId=network["gateway"], VpcId=network["vpc"]),
        ],
        "InvalidIPAddress.InUse": [lambda: ec2.release_address(AllocationId=address)],
        "InvalidParameterValue": [
            lambda: ec2.delete_network_interface(
                NetworkInterfaceId=interface["NetworkInterfaces"][0]["NetworkInterfaceId"]
            )
        ],
    }
    assert {code: [refused(one)[0] for one in ones] for code, ones in attempts.items()} == {
        code: [code] * len(ones) for code, ones in attempts.items()
    }
    dry = refused(ec2.delete_subnet, SubnetId=network["subnet"], DryRun=True)[0]
    assert dry == "DryRunOperation", "AWS looks at nothing else then"
    ec2.terminate_instances(InstanceIds=[instance])
    # A rule of another group still refers to it.
    assert refused(ec2.delete_security_group, GroupId=network["nodes"]) == (
        "DependencyViolation", f"resource {network['nodes']} has a dependent object",
    )  # fmt: skip
    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [network["others"]]}])
    mine = [row["SecurityGroupRuleId"] for row in rules["SecurityGroupRules"] if not row["IsEgress"]]
    ec2.revoke_security_group_ingress(GroupId=network["others"], SecurityGroupRuleIds=mine)
    ec2.release_address(AllocationId=address)
    take_down(ec2, network)


def test_a_network_with_gateways_or_endpoints_cannot_be_deleted(aws: AwsClients, network: Mapping[str, str]) -> None:
    ec2 = aws["ec2"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=network["subnet"], AllocationId=address)["NatGateway"]["NatGatewayId"]
    endpoint = ec2.create_vpc_endpoint(
        VpcId=network["vpc"], ServiceName="com.amazonaws.us-east-1.ssm", VpcEndpointType="Interface",
        SubnetIds=[network["subnet"]], SecurityGroupIds=[network["others"]],
    )["VpcEndpoint"]["VpcEndpointId"]  # fmt: skip
    assert refused(ec2.delete_security_group, GroupId=network["others"])[0] == "DependencyViolation"
    ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
    code, message = refused(
        ec2.detach_internet_gateway, InternetGatewayId=network["gateway"], VpcId=network["vpc"]
    )  # fmt: skip
    assert (code, "mapped public address(es)" in message) == ("DependencyViolation", True)
    assert refused(ec2.delete_subnet, SubnetId=network["subnet"])[0] == "DependencyViolation"
    assert refused(ec2.release_address, AllocationId=address)[0] == "InvalidIPAddress.InUse"
    ec2.delete_nat_gateway(NatGatewayId=nat)
    (free,) = eventually(lambda: ec2.describe_addresses(AllocationIds=[address])["Addresses"], lambda rows: rows)
    assert "AssociationId" not in free
    ec2.release_address(AllocationId=address)
    take_down(ec2, network)


def test_identities_in_use_cannot_be_deleted(aws: AwsClients) -> None:
    iam = aws["iam"]
    policy = iam.create_policy(PolicyName="leaf", PolicyDocument=ALLOW)["Policy"]["Arn"]
    iam.create_group(GroupName="leaves")
    iam.create_user(UserName="leaf")
    iam.create_role(RoleName="leaf", AssumeRolePolicyDocument=TRUST)
    iam.create_instance_profile(InstanceProfileName="leaf")
    iam.add_role_to_instance_profile(InstanceProfileName="leaf", RoleName="leaf")
    iam.add_user_to_group(GroupName="leaves", UserName="leaf")
    iam.attach_group_policy(GroupName="leaves", PolicyArn=policy)
    iam.put_group_policy(GroupName="leaves", PolicyName="own", PolicyDocument=ALLOW)
    iam.attach_role_policy(RoleName="leaf", PolicyArn=policy)
    iam.put_role_policy(RoleName="leaf", PolicyName="own", PolicyDocument=ALLOW)
    key = iam.create_access_key(UserName="leaf")["AccessKey"]["AccessKeyId"]
    iam.create_policy_version(PolicyArn=policy, PolicyDocument=ALLOW, SetAsDefault=True)
    # Before each of these, the deletion is refused.
    deletions: dict[str, Any] = {
        "policy": lambda: iam.delete_policy(PolicyArn=policy),
        "group": lambda: iam.delete_group(GroupName="leaves"),
        "user": lambda: iam.delete_user(UserName="leaf"),
        "role": lambda: iam.delete_role(RoleName="leaf"),
        "profile": lambda: iam.delete_instance_profile(InstanceProfileName="leaf"),
    }
    steps: list[tuple[str, Any]] = [
        ("policy", lambda: iam.detach_role_policy(RoleName="leaf", PolicyArn=policy)),
        ("policy", lambda: iam.detach_group_policy(GroupName="leaves", PolicyArn=policy)),
        ("policy", lambda: iam.delete_policy_version(PolicyArn=policy, VersionId="v1")),
        ("user", lambda: iam.remove_user_from_group(GroupName="leaves", UserName="leaf")),
        ("user", lambda: iam.delete_access_key(UserName="leaf", AccessKeyId=key)),
        ("group", lambda: iam.delete_group_policy(GroupName="leaves", PolicyName="own")),
        ("role", lambda: iam.delete_role_policy(RoleName="leaf", PolicyName="own")),
        ("profile", lambda: iam.remove_role_from_instance_profile(InstanceProfileName="leaf", RoleName="leaf")),
    ]
    assert refused(deletions["group"])[1] == "Cannot delete entity, must remove users from group first."
    for name, step in steps:
        assert refused(deletions[name])[0] == "DeleteConflict", name
        step()
    for deletion in deletions.values():
        deletion()
