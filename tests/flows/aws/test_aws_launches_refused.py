# SPDX-License-Identifier: Apache-2.0
"""Launches that EC2 refuses for a value, with its codes, and filters that it does not have."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.aws_clients import AwsClients, refused

TRUST = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]})  # fmt: skip
SHOWN = {"HttpTokens": "required", "InstanceMetadataTags": "enabled"}


@pytest.fixture(scope="module")
def launch(aws: AwsClients) -> Mapping[str, Any]:
    """A launch that would succeed."""
    vpc = aws["ec2"].create_vpc(CidrBlock="10.5.0.0/16")["Vpc"]["VpcId"]
    subnet = aws["ec2"].create_subnet(VpcId=vpc, CidrBlock="10.5.1.0/24", AvailabilityZone="us-east-1a")["Subnet"]
    wanted = {
        "ImageId": "ami-0d11a1b2c3d4e5f60", "InstanceType": "dl1.24xlarge", "MinCount": 1, "MaxCount": 1,
        "SubnetId": subnet["SubnetId"], "DryRun": True,
    }  # fmt: skip
    assert refused(aws["ec2"].run_instances, **wanted)[0] == "DryRunOperation"
    return wanted


def tagged(*keys: str) -> list[dict[str, Any]]:
    return [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": "42"} for key in keys]}]


def test_user_data_beyond_the_limit_is_refused(aws: AwsClients, launch: Mapping[str, Any]) -> None:
    ec2 = aws["ec2"]
    fits, too_long = "x" * 16_384, "x" * 16_385
    assert refused(ec2.run_instances, **launch, UserData=fits)[0] == "DryRunOperation"
    assert refused(ec2.run_instances, **launch, UserData=too_long) == (
        "InvalidParameterValue", "User data is limited to 16384 bytes",
    )  # fmt: skip
    data = {"UserData": base64.b64encode(too_long.encode()).decode()}
    code = refused(ec2.create_launch_template, LaunchTemplateName="long", LaunchTemplateData=data)[0]
    assert code == "InvalidUserData.Malformed", "templates have another code for it"


@pytest.mark.parametrize("key", ["company/cost centre", "cost centre", "a/b", ".", "..", "_index", "ä"])
def test_a_tag_that_the_metadata_service_cannot_serve_is_refused(
    aws: AwsClients, launch: Mapping[str, Any], key: str
) -> None:
    ec2 = aws["ec2"]
    plain = {**launch, "TagSpecifications": tagged("team", key)}
    assert refused(ec2.run_instances, **plain)[0] == "DryRunOperation", "without tags in metadata, it may be"
    code, message = refused(ec2.run_instances, **plain, MetadataOptions=SHOWN)
    assert (code, message.startswith(f"'{key}' is not a valid tag key.")) == ("InvalidParameterValue", True)


def test_tags_of_a_template_and_later_tags_are_checked_too(aws: AwsClients, launch: Mapping[str, Any]) -> None:
    ec2 = aws["ec2"]
    data = {"MetadataOptions": SHOWN, "TagSpecifications": tagged("cost centre")}
    ec2.create_launch_template(LaunchTemplateName="tags-refused", LaunchTemplateData=data)
    by_template = {**launch, "LaunchTemplate": {"LaunchTemplateName": "tags-refused"}}
    assert refused(ec2.run_instances, **by_template)[0] == "InvalidParameterValue"
    instance = ec2.run_instances(**{**launch, "DryRun": False}, MetadataOptions=SHOWN)["Instances"][0]["InstanceId"]
    try:
        later = {"Resources": [instance], "Tags": [{"Key": "cost centre", "Value": "42"}]}
        assert refused(ec2.create_tags, **later)[0] == "InvalidParameterValue"
    finally:
        ec2.terminate_instances(InstanceIds=[instance])


def test_a_missing_instance_profile_is_a_retryable_error(aws: AwsClients, launch: Mapping[str, Any]) -> None:
    ec2, iam = aws["ec2"], aws["iam"]
    named = {**launch, "IamInstanceProfile": {"Name": "late"}}
    assert refused(ec2.run_instances, **named) == (
        "InvalidParameterValue",
        "Value (late) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
    )
    arn = "arn:aws:iam::123456789012:instance-profile/late"
    code, message = refused(ec2.run_instances, **{**launch, "IamInstanceProfile": {"Arn": arn}})
    assert (code, "Invalid IAM Instance Profile ARN" in message) == ("InvalidParameterValue", True)
    iam.create_instance_profile(InstanceProfileName="late")
    code, message = refused(ec2.run_instances, **named)
    assert (code, "has no associated IAM Roles" in message) == ("InvalidParameterValue", True)
    iam.create_role(RoleName="late", AssumeRolePolicyDocument=TRUST)
    iam.add_role_to_instance_profile(InstanceProfileName="late", RoleName="late")
    assert refused(ec2.run_instances, **named)[0] == "DryRunOperation"


def test_too_many_devices_on_a_network_card_are_refused(aws: AwsClients, launch: Mapping[str, Any]) -> None:
    rows = [{"DeviceIndex": 0, "NetworkCardIndex": 0}, {"DeviceIndex": 15, "NetworkCardIndex": 1}]
    rest = {name: value for name, value in launch.items() if name != "SubnetId"}
    interfaces = [{**row, "SubnetId": launch["SubnetId"], "InterfaceType": "efa"} for row in rows]
    code, message = refused(aws["ec2"].run_instances, **rest, NetworkInterfaces=interfaces)
    assert (code, "Specify a number from 0 to 14" in message) == ("InvalidParameterValue", True)


@pytest.mark.parametrize("kind", ["dl1.24xlarge", "p4d.24xlarge", "p5.48xlarge", "p5en.48xlarge", "g6e.48xlarge"])
def test_the_layout_that_aws_recommends_for_efa_is_taken(aws: AwsClients, launch: Mapping[str, Any], kind: str) -> None:
    """An ordinary primary interface; `efa-only` beside it on card 0, and with device index 0 on each further card."""
    ec2 = aws["ec2"]
    (found,) = ec2.describe_instance_types(InstanceTypes=[kind])["InstanceTypes"]
    cards = range(1, found["NetworkInfo"]["MaximumNetworkCards"])
    fast = {"SubnetId": launch["SubnetId"], "InterfaceType": "efa-only"}
    primary = {"DeviceIndex": 0, "NetworkCardIndex": 0, "SubnetId": launch["SubnetId"]}
    layout = [primary, {**fast, "NetworkCardIndex": 0, "DeviceIndex": 1}]
    layout += [{**fast, "NetworkCardIndex": card, "DeviceIndex": 0} for card in cards]
    rest = {name: value for name, value in launch.items() if name != "SubnetId"} | {"InstanceType": kind}
    assert refused(ec2.run_instances, **rest, NetworkInterfaces=layout)[0] == "DryRunOperation"
    only = [{**fast, "NetworkCardIndex": 0, "DeviceIndex": 0}]
    code, message = refused(ec2.run_instances, **rest, NetworkInterfaces=only)
    assert (code, "cannot be the primary" in message) == ("InvalidParameterValue", True)


def test_a_filter_that_ec2_does_not_have_is_invalid(aws: AwsClients) -> None:
    ec2 = aws["ec2"]

    def by(name: str) -> dict[str, Any]:
        return {"Filters": [{"Name": name, "Values": ["x"]}]}

    for call in (ec2.describe_instances, ec2.describe_subnets, ec2.describe_placement_groups, ec2.describe_addresses):
        assert refused(call, **by("colour")) == ("InvalidParameterValue", "The filter 'colour' is invalid")
        call(**by("tag:colour"))
    code, message = refused(ec2.describe_subnets, **by("outpost-arn"))
    assert (code, message) == (
        "InvalidAction", "The local AWS does not implement the filter 'outpost-arn' of"
        " ec2.DescribeSubnets",
    )  # fmt: skip
    assert refused(ec2.describe_placement_groups, **by("spread-level"))[0] == "InvalidAction"
    assert ec2.describe_placement_groups(**by("strategy"))["PlacementGroups"] == []
