# SPDX-License-Identifier: Apache-2.0
"""The real provider must read back what it wrote. Otherwise, its next plan shows changes that nobody made.

Each of these was seen with HashiCorp's provider 5.52, which Pulumi's wraps, against the local AWS.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.aws_clients import AwsClients, refused


@pytest.fixture(scope="module")
def vpc(aws: AwsClients) -> str:
    return str(aws["ec2"].create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"])


def rules(aws: AwsClients, group: str) -> list[dict[str, Any]]:
    found = aws["ec2"].describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])
    return list(found["SecurityGroupRules"])


@pytest.mark.parametrize("peer", ["group", "prefix list", "cidr"])
def test_a_rule_keeps_its_description_whatever_its_peer_is(aws: AwsClients, vpc: str, peer: str) -> None:
    ec2 = aws["ec2"]
    group = ec2.create_security_group(GroupName=f"described-{peer}", Description="d", VpcId=vpc)["GroupId"]
    prefixes = ec2.describe_prefix_lists()["PrefixLists"][0]["PrefixListId"]
    name, key, value, changed = {
        "group": ("UserIdGroupPairs", "GroupId", group, "ReferencedGroupId"),
        "prefix list": ("PrefixListIds", "PrefixListId", prefixes, "PrefixListId"),
        "cidr": ("IpRanges", "CidrIp", "10.9.0.0/24", "CidrIpv4"),
    }[peer]
    asked = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, name: [{key: value, "Description": "why"}]}
    (made,) = ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[asked])["SecurityGroupRules"]
    assert made["Description"] == "why"
    # The same rule with another description is the same rule.
    again = {**asked, name: [{key: value, "Description": "other words"}]}
    code, _ = refused(ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=[again])
    assert code == "InvalidPermission.Duplicate"
    one = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, changed: value}
    for words in ("changed", None):
        rule = {**one, **({"Description": words} if words else {})}
        rows = [{"SecurityGroupRuleId": made["SecurityGroupRuleId"], "SecurityGroupRule": rule}]
        ec2.modify_security_group_rules(GroupId=group, SecurityGroupRules=rows)
        assert [row.get("Description") for row in rules(aws, group) if not row["IsEgress"]] == [words]
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[again])
    assert not [row for row in rules(aws, group) if not row["IsEgress"]]


def test_a_rule_for_every_protocol_is_changed_without_ports(aws: AwsClients, vpc: str) -> None:
    ec2 = aws["ec2"]
    group = ec2.create_security_group(GroupName="every-protocol", Description="d", VpcId=vpc)["GroupId"]
    asked = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group, "Description": "why"}]}
    (made,) = ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[asked])["SecurityGroupRules"]
    rule = {"IpProtocol": "-1", "ReferencedGroupId": group, "Description": "changed"}
    rows = [{"SecurityGroupRuleId": made["SecurityGroupRuleId"], "SecurityGroupRule": rule}]
    ec2.modify_security_group_rules(GroupId=group, SecurityGroupRules=rows)
    (changed,) = [row for row in rules(aws, group) if not row["IsEgress"]]
    assert (changed["Description"], changed["FromPort"], changed["ToPort"]) == ("changed", -1, -1)


def test_a_deleted_endpoint_is_gone(aws: AwsClients, vpc: str) -> None:
    ec2 = aws["ec2"]
    made = ec2.create_vpc_endpoint(VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3")["VpcEndpoint"]["VpcEndpointId"]
    assert ec2.delete_vpc_endpoints(VpcEndpointIds=[made])["Unsuccessful"] == []
    code, _ = refused(ec2.describe_vpc_endpoints, VpcEndpointIds=[made])
    assert code == "InvalidVpcEndpointId.NotFound"
    assert ec2.describe_vpc_endpoints()["VpcEndpoints"] == []
