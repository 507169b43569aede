# SPDX-License-Identifier: Apache-2.0
"""Security groups and their rules."""

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

_PARTS_OF_RULE = "ipProtocol cidrIpv4 cidrIpv6 prefixListId referencedSecurityGroupId fromPort toPort description"


def read_left_interfaces(name: str) -> Read:
    """A call before a deletion: the real provider looks for interfaces that services of AWS left behind."""
    return unused_read("DescribeNetworkInterfaces", {"Filters": [{"Name": name, "Values": ["{id}"]}]})


def _rule_type(direction: str) -> AwsResourceType:
    return ec2_type(
        f"aws:vpc/securityGroup{direction}Rule:SecurityGroup{direction}Rule",
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
        one_of="cidrIpv4 cidrIpv6 prefixListId referencedSecurityGroupId",
        tags="",
        create=Creation(f"AuthorizeSecurityGroup{direction}", "{SecurityGroupRuleId}", "SecurityGroupRules[0]"),
        reads=(read_by_id("DescribeSecurityGroupRules", "SecurityGroupRuleIds", "SecurityGroupRules[0]"),),
        delete=Deletion(
            f"RevokeSecurityGroup{direction}", {"GroupId": "{securityGroupId}", "SecurityGroupRuleIds": ["{id}"]}
        ),
        taken_codes="InvalidPermission.Duplicate",
        behaviour="groups.GroupRuleResource",
        provider=RealProvider(
            f"ec2/vpc_security_group_{direction.lower()}_rule.go",
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
            waits={"create": "InvalidGroup.NotFound", "delete": "DependencyViolation InvalidGroup.InUse"},
            unreached={"interfaces of Lambda, Comprehend and DMS": "DetachNetworkInterface DeleteNetworkInterface"},
        ),
        live=LiveState(filter="group-id"),
        arns=ec2_arn("security-group", "ec2", "ssm"),
    ),
    _rule_type("Ingress"),
    _rule_type("Egress"),
)  # fmt: skip
