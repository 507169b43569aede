# SPDX-License-Identifier: Apache-2.0
"""Access is checked for everything that a call of EC2 refers to, and by keys that requests really have.

The cases are from botocore's model of EC2, which has every parameter, and from moto, which makes the ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from catalog.tables import table
from components.aws.iam.decide import KNOWN_KEYS, REQUEST_KEYS, AwsPrincipal
from components.aws.types import SERVED_TYPES
from localcloud.aws.access.decisions import ec2_may_assume
from localcloud.aws.access.needs import needs_of_aws_call
from localcloud.aws.border.parameters import write_flat_parameters
from localcloud.aws.border.requests import parse_aws_call, service_model
from localcloud.aws.calls import RawCall
from localcloud.aws.gaps import botocore_coverage
from localcloud.aws.services import SERVICES
from tests.support.aws_inside import AwsInside, aws_inside

ACCOUNT, REGION = "123456789012", "us-east-1"
CALLER = AwsPrincipal(
    f"arn:aws:sts::{ACCOUNT}:assumed-role/r/s", role="r", since="2026-11-27T00:00:00+00:00", tags=(("team", "a"),)
)
# Members whose name ends like a reference, and why access is not checked for it.
_OF_NOBODY = "the local AWS has no such resource, so the call finds none"
_NOT_JUDGED: Mapping[str, str] = {
    "AWSAccessKeyId": "a key of the caller", "AvailabilityZoneId": "zones belong to nobody",
    "DestinationAvailabilityZoneId": "zones belong to nobody", "AssetIds": _OF_NOBODY, "BundleId": _OF_NOBODY,
    "IpamPoolId": _OF_NOBODY, "Ipv4IpamPoolId": _OF_NOBODY, "Ipv6IpamPoolId": _OF_NOBODY, "QuoteId": _OF_NOBODY,
    "MetricCategoryIds": "names of metrics", "PeerAccountId": "an account", "PeerOwnerId": "an account",
    "SourceSecurityGroupOwnerId": "an account", "UserId": "an account", "UserIds": "accounts", "OwnerId": "an account",
    "KmsKeyId": "no volume is encrypted: moto only stores the name", "KernelId": "moto only stores it",
    "RamDiskId": "moto only stores it", "RamdiskId": "moto only stores it",
}  # fmt: skip


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsInside]:
    with aws_inside(Path(tmp_path_factory.mktemp("aws"))) as made:
        yield made


def leaves(shape: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all members that are texts without fixed values."""
    if shape.type_name == "structure" and len(path) < 8:
        for name, member in shape.members.items():
            yield from leaves(member, (*path, name))
    elif shape.type_name == "list":
        yield from leaves(shape.member, path)
    elif shape.type_name == "string" and not shape.enum:
        yield path


def nested(shape: Any, path: Sequence[str], value: str) -> Any:
    if shape.type_name == "list":
        return [nested(shape.member, path, value)]
    return {path[0]: nested(shape.members[path[0]], path[1:], value)} if path else value


def operations() -> list[str]:
    names = next(row.there for row in botocore_coverage() if row.title == "EC2")
    return [name for name in names if not name.startswith("Describe") or name.endswith("Attribute")]


def resources_of(operation: str, parameters: Mapping[str, str]) -> set[str]:
    call = parse_aws_call(RawCall(SERVICES["ec2"], REGION, operation, parameters))
    return {need.resource for need in needs_of_aws_call(call, CALLER)}


@pytest.mark.usefixtures("inside")
def test_access_is_checked_for_an_id_in_any_parameter() -> None:
    """Also for parameters that a later version of AWS's model adds."""
    # A launch from a template is checked, and not the making of it. Filters and tags refer to nothing.
    apart, seen = ("Filters", "Filter", "TagSpecifications", "Tags", "LaunchTemplateData"), 0
    for operation in operations():
        shape = service_model("ec2").operation_model(operation).input_shape
        for path in leaves(shape) if shape is not None else ():
            name = path[-1]
            if path[0] in apart or not re.search(r"(Id|Ids|Resources)$", name) or name in _NOT_JUDGED:
                continue
            seen += 1
            parameters = write_flat_parameters(nested(shape, path, "vpc-0123456789abcdef0"), shape)
            assert any("vpc/vpc-0123456789abcdef0" in one for one in resources_of(operation, parameters)), (
                operation, path,
            )  # fmt: skip
    assert seen > 250


# Actions of the provider's rows that no row `also` has, and what demands them.
_BY_A_RULE = {
    "iam:CreateServiceLinkedRole": "an account's first spot launch",
    "iam:PassRole": "a profile with a role, in a launch or where it is made",
    "s3:DeleteObjectVersion": "a version's id in DeleteObjects",
    "s3:ListBucket": "a read of an object that is not there",
}


def test_what_aws_wants_beside_the_providers_calls_is_demanded() -> None:
    demanded = {action for members in table("aws_calls")["also"].values() for action in members.values()}
    named = {
        action for row in SERVED_TYPES.values() for text in row.provider.actions.values() for action in text.split()
    }
    assert named - demanded == set(_BY_A_RULE)


def test_every_kind_of_id_says_what_it_is_of() -> None:
    from moto.ec2.utils import EC2_RESOURCE_TO_PREFIX

    rows = table("aws_calls")["ec2"]
    # Nothing names a reservation. Reserved instances have no prefix: the names of their parameters tell.
    assert set(EC2_RESOURCE_TO_PREFIX.values()) - {"uuid4", "r"} <= {*rows["prefixes"], *rows["associations"]}


@pytest.mark.usefixtures("inside")
def test_tags_of_a_new_resource_need_the_permission_to_tag() -> None:
    for operation in operations():
        shape = service_model("ec2").operation_model(operation).input_shape
        if shape is None or "TagSpecifications" not in shape.members:
            continue
        tags = [{"ResourceType": "snapshot", "Tags": [{"Key": "a", "Value": ""}]}]
        parameters = write_flat_parameters({"TagSpecifications": tags}, shape)
        call = parse_aws_call(RawCall(SERVICES["ec2"], REGION, operation, parameters))
        actions = {(need.action, need.keys.get("aws:RequestTag/a")) for need in needs_of_aws_call(call, CALLER)}
        assert {(f"ec2:{operation}", ("",)), ("ec2:CreateTags", ("",))} <= actions, operation
        if operation not in table("aws_calls")["refused"]["ec2"]:
            assert table("aws_calls")["ec2"]["makes"].get(operation), f"{operation} makes something"


def test_resources_are_found_by_their_other_names(inside: AwsInside) -> None:
    ec2 = inside.client(inside.deployer, "ec2")
    vpc = ec2.create_vpc(CidrBlock="10.3.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.3.1.0/24")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="named", Description="d", VpcId=vpc)["GroupId"]
    routes = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    joined = ec2.associate_route_table(RouteTableId=routes, SubnetId=subnet)["AssociationId"]
    main = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"][0]
    acl = ec2.describe_network_acls(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["NetworkAcls"][0]
    address = ec2.allocate_address(Domain="vpc")
    placed = ec2.create_placement_group(GroupName="near", Strategy="cluster")["PlacementGroup"]["GroupId"]
    template = ec2.create_launch_template(LaunchTemplateName="lt", LaunchTemplateData={"KeyName": "k"})
    identifier = template["LaunchTemplate"]["LaunchTemplateId"]
    cases: list[tuple[str, Mapping[str, str], str]] = [
        ("RunInstances", {"SecurityGroup.1": "named"}, f"security-group/{group}"),
        ("AuthorizeSecurityGroupIngress", {"GroupName": group}, f"security-group/{group}"),
        ("RevokeSecurityGroupEgress", {"SourceSecurityGroupName": "named"}, f"security-group/{group}"),
        ("DisassociateRouteTable", {"AssociationId": joined}, f"route-table/{routes}"),
        ("ReplaceRouteTableAssociation", {"AssociationId": main["Associations"][0]["RouteTableAssociationId"]},
         f"route-table/{main['RouteTableId']}"),
        ("ReplaceNetworkAclAssociation", {"AssociationId": acl["Associations"][0]["NetworkAclAssociationId"]},
         f"network-acl/{acl['NetworkAclId']}"),
        ("ReleaseAddress", {"PublicIp": address["PublicIp"]}, f"elastic-ip/{address['AllocationId']}"),
        ("CreateLaunchTemplateVersion", {"LaunchTemplateName": "lt"}, f"launch-template/{identifier}"),
        ("CreateTags", {"ResourceId.1": placed}, "placement-group/near"),
        ("DeletePlacementGroup", {"GroupName": "near"}, "placement-group/near"),
        ("CreateCapacityReservation", {"PlacementGroupArn": f"arn:aws:ec2:{REGION}:{ACCOUNT}:placement-group/near"},
         "placement-group/near"),
        ("CreateFlowLogs", {"DeliverLogsPermissionArn": f"arn:aws:iam::{ACCOUNT}:role/boss"}, "role/boss"),
        ("DisassociateSubnetCidrBlock", {"AssociationId": "subnet-cidr-assoc-0123456789abcdef0"},
         "unknown/subnet-cidr-assoc-0123456789abcdef0"),
    ]  # fmt: skip
    for operation, parameters, resource in cases:
        assert any(one.endswith(resource) for one in resources_of(operation, parameters)), operation


def test_the_known_condition_keys_are_those_that_requests_have(inside: AwsInside) -> None:
    """A known key that no request has would silently make a Deny without effect."""
    inside.ask(inside.deployer, "ecr", "CreateRepository", repositoryName="rr", tags=[{"Key": "a", "Value": "b"}])
    arn = f"arn:aws:iam::{ACCOUNT}"
    inside.ask(inside.deployer, "iam", "CreateUser", UserName="tagged", Tags=[{"Key": "a", "Value": "b"}])
    secret = inside.ask(inside.deployer, "secretsmanager", "CreateSecret", Name="s", SecretString="x",
                        Tags=[{"Key": "a", "Value": "b"}])["ARN"]  # fmt: skip
    vpc = inside.ask(inside.deployer, "ec2", "CreateVpc", CidrBlock="10.4.0.0/16", TagSpecifications=[
        {"ResourceType": "vpc", "Tags": [{"Key": "a", "Value": "b"}]}])["Vpc"]["VpcId"]  # fmt: skip
    s3 = {"Bucket": "b", "Key": "", "Source": "", "SourceVersion": ""}
    headers = {"x-amz-acl": "private", "x-amz-server-side-encryption": "AES256", "x-amz-tagging": "a=b",
               "if-none-match": "*"}  # fmt: skip
    tag = {"TagSpecification.1.ResourceType": "vpc", "TagSpecification.1.Tag.1.Key": "a"}
    calls: list[tuple[str, str, Mapping[str, Any], Mapping[str, str]]] = [
        ("ec2", "CreateVpc", tag, {}), ("ec2", "DeleteVpc", {"VpcId": vpc}, {}), ("ec2", "RunInstances", {}, {}),
        ("iam", "TagUser", {"UserName": "tagged", "Tags.member.1.Key": "a"}, {}),
        ("iam", "CreateRole", {"RoleName": "r2", "PermissionsBoundary": f"{arn}:policy/p"}, {}),
        ("iam", "CreateServiceLinkedRole", {"AWSServiceName": "spot.amazonaws.com"}, {}),
        ("iam", "AttachUserPolicy", {"UserName": "u", "PolicyArn": f"{arn}:policy/p"}, {}),
        ("iam", "AddRoleToInstanceProfile", {"RoleName": "r", "InstanceProfileName": "r"}, {}),
        ("sts", "AssumeRole", {"RoleArn": f"{arn}:role/r", "RoleSessionName": "s", "ExternalId": "x1"}, {}),
        ("s3", "PutObject", {**s3, "Key": "k"}, headers),
        ("s3", "ListObjects", {**s3, "prefix": "a", "delimiter": "/", "max-keys": "1"}, {}),
        ("secretsmanager", "GetSecretValue", {"SecretId": secret}, {}),
        ("ecr", "DeleteRepository", {"repositoryName": "rr"}, {}),
    ]  # fmt: skip
    given: set[str] = set()
    for caller in (CALLER, AwsPrincipal(f"{arn}:user/user", user="user")):
        for prefix, operation, parameters, sent in calls:
            service = next(row for row in SERVICES.values() if row.prefix == prefix)
            target = f"{prefix}.{operation}"
            if service.wire.value == "json":
                sent = {"x-amz-target": f"{service_model(service.backend).metadata['targetPrefix']}.{operation}"}
            call = parse_aws_call(RawCall(service, REGION, operation, parameters, sent))
            given |= {key for need in needs_of_aws_call(call, caller) for key in need.keys}
            assert target
    known = {name for name in REQUEST_KEYS if any(key.startswith(name) for key in given)}
    # EC2 assumes the role of an instance with this key (`ec2_may_assume`).
    assert ec2_may_assume is not None
    assert set(REQUEST_KEYS) - known == {"aws:SourceAccount"}
    assert {key for key in given if not KNOWN_KEYS.fullmatch(key)} == set()
