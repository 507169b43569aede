# SPDX-License-Identifier: Apache-2.0
"""Security groups and their rules."""

from functools import partial

from components.aws.types.aws_resource_type import (
    AwsResourceType,
    Creation,
    Deletion,
    LiveState,
    Read,
    RealProvider,
    ec2_arn,
    ec2_type,
    read_by_id,
    unused_read,
)
from components.aws.types.security_rules import read_rule_with_type, read_rules_of_group, read_security_rules
from components.values.resource_types import ResourceType, input_names, inputs_in_reviews
from components.values.security_rules import Direction

_PARTS_OF_RULE = "ipProtocol cidrIpv4 cidrIpv6 prefixListId referencedSecurityGroupId fromPort toPort description"


def read_left_interfaces(name: str) -> Read:
    """A call before a deletion: the real provider looks for interfaces that services of AWS left behind."""
    return unused_read("DescribeNetworkInterfaces", {"Filters": [{"Name": name, "Values": ["{id}"]}]})


def _rule_type(direction: Direction) -> AwsResourceType:
    name = direction.title()
    return ec2_type(
        f"aws:vpc/securityGroup{name}Rule:SecurityGroup{name}Rule",
        "security-group-rule",
        f"securityGroupId {_PARTS_OF_RULE}",
        "arn securityGroupRuleId",
        renamed={"referencedSecurityGroupId": "ReferencedGroupId"},
        model_paths={
            "securityGroupId": "GroupId",
            "referencedSecurityGroupId": "ReferencedGroupInfo.GroupId",
            "arn": "SecurityGroupRuleArn",
        },
        replaced_by="securityGroupId",
        unset={"fromPort": -1, "toPort": -1},
        one_of="cidrIpv4 cidrIpv6 prefixListId referencedSecurityGroupId",
        tags="",
        create=Creation(f"AuthorizeSecurityGroup{name}", "{SecurityGroupRuleId}", "SecurityGroupRules[0]"),
        reads=(read_by_id("DescribeSecurityGroupRules", "SecurityGroupRuleIds", "SecurityGroupRules[0]"),),
        delete=Deletion(
            f"RevokeSecurityGroup{name}", {"GroupId": "{securityGroupId}", "SecurityGroupRuleIds": ["{id}"]}
        ),
        taken_codes="InvalidPermission.Duplicate",
        behaviour="groups.GroupRuleResource",
        part="security rule",
        security_rules=partial(read_security_rules, direction=direction),
        in_reviews=inputs_in_reviews(judged=f"securityGroupId {_PARTS_OF_RULE}"),
        provider=RealProvider(
            f"ec2/vpc_security_group_{direction}_rule.go",
            calls=dict.fromkeys(_PARTS_OF_RULE.split(), "ModifySecurityGroupRules"),
            before={"create": "CreateTags"},  # 6.x tags a rule as it is made
        ),
    )


SECURITY_GROUP_TYPES = (
    ec2_type(
        "aws:ec2/securityGroup:SecurityGroup", "security-group",
        "name namePrefix description vpcId ingress egress revokeRulesOnDelete", "ownerId",
        defaults={"description": "Managed by Pulumi"}, extra="ingress egress revokeRulesOnDelete", named="name",
        longest_name=255, renamed={"name": "GroupName"}, computed_outputs=ec2_arn("security-group"),
        replaced_by="description name namePrefix vpcId", computed="egress ingress vpcId", unordered="egress ingress",
        create=Creation("CreateSecurityGroup", "{GroupId}"),
        reads=(read_by_id("DescribeSecurityGroups", "GroupIds", "SecurityGroups[0]"),),
        delete=Deletion("DeleteSecurityGroup", {"GroupId": "{id}"}, (read_left_interfaces("group-id"),)),
        taken_codes="InvalidGroup.Duplicate", behaviour="groups.SecurityGroupResource",
        # The rule that AWS gives to a new group is revoked.
        provider=RealProvider(
            "ec2/vpc_security_group.go",
            calls={
                "create": "RevokeSecurityGroupEgress",
                "ingress": "AuthorizeSecurityGroupIngress RevokeSecurityGroupIngress",
                "egress": "AuthorizeSecurityGroupEgress RevokeSecurityGroupEgress",
                "revokeRulesOnDelete": "DescribeSecurityGroupRules RevokeSecurityGroupIngress "
                "RevokeSecurityGroupEgress",
            },
            unreached={"interfaces of Lambda, Comprehend and DMS": "DetachNetworkInterface DeleteNetworkInterface"},
        ),
        live=LiveState(filter="group-id"),
        arns=ec2_arn("security-group", "ec2", "ssm"),
        part="security group", security_rules=read_rules_of_group,
        in_reviews=inputs_in_reviews(
            judged="egress ingress", placed="name namePrefix vpcId",
            plain={"how a destroy removes it": "revokeRulesOnDelete"},
        ),
    ),
    # It is there with its VPC. So nobody has to tag it, as the defaults of OCI.
    ResourceType(
        token="aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", replaced_by=input_names("vpcId"),
        computed=input_names("egress ingress vpcId"), unordered=input_names("egress ingress"),
        part="security group", security_rules=read_rules_of_group,
        in_reviews=inputs_in_reviews(
            judged="egress ingress", placed="vpcId", plain={"how a destroy removes it": "revokeRulesOnDelete"},
        ),
    ),
    ResourceType(
        token="aws:ec2/securityGroupRule:SecurityGroupRule",
        replaced_by=input_names(
            "cidrBlocks fromPort ipv6CidrBlocks prefixListIds protocol securityGroupId self sourceSecurityGroupId "
            "toPort type"
        ),
        computed=input_names("sourceSecurityGroupId"),
        part="security rule", security_rules=read_rule_with_type,
        in_reviews=inputs_in_reviews(
            judged="cidrBlocks fromPort ipv6CidrBlocks prefixListIds protocol securityGroupId self "
            "sourceSecurityGroupId toPort type",
        ),
    ),
    _rule_type("ingress"),
    _rule_type("egress"),
)  # fmt: skip
