# SPDX-License-Identifier: Apache-2.0
"""What is known of the functions of Pulumi's provider `aws`, such as `getVpc`: one row each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from components.aws.types.aws_resource_type import ATTEMPT_TAG, NOTHING


class AwsFunction(NamedTuple):
    """A function that finds something by one call."""

    service: str
    operation: str
    # A file of the real provider, as in `RealProvider`.
    source: str
    # Parameters as templates of arguments. A parameter is left out if its argument is missing.
    parameters: Mapping[str, Any] = NOTHING
    # Argument -> the filter of the operation that it sets.
    filters: Mapping[str, str] = NOTHING
    # A JMESPath in the response: the properties of the result, by their Pulumi names or the API's.
    at: str = "@"
    id: str = "{id}"
    # Whether exactly one result is required.
    one: bool = False
    # Calls of the real provider whose responses are not needed here: operation -> templates of parameters.
    unused_calls: Mapping[str, Mapping[str, Any]] = NOTHING
    # Error codes with which these calls say that something does not exist, as words.
    missing: str = ""
    # As in `RealProvider`.
    before: Mapping[str, str] = NOTHING
    unreached: Mapping[str, str] = NOTHING


_VPC = {"id": "vpc-id", "cidrBlock": "cidr", "default": "is-default", "state": "state"}
_SUBNET = {
    "id": "subnet-id", "vpcId": "vpc-id", "cidrBlock": "cidr-block", "availabilityZone": "availability-zone",
    "state": "state",
}  # fmt: skip
_TABLE = {"routeTableId": "route-table-id", "vpcId": "vpc-id", "subnetId": "association.subnet-id"}
_BLOCKS = "{associationId: AssociationId, cidrBlock: CidrBlock, state: CidrBlockState.State}"
_ZONES = "{names: AvailabilityZones[].ZoneName, zoneIds: AvailabilityZones[].ZoneId, groupNames: " \
    "AvailabilityZones[].GroupName}"  # fmt: skip
_OFFERED = (
    "{instanceTypes: InstanceTypeOfferings[].InstanceType, locations: InstanceTypeOfferings[].Location, "
    "locationTypes: InstanceTypeOfferings[].LocationType}"
)

_OF_VPC: Mapping[str, Mapping[str, Any]] = {
    "DescribeVpcAttribute": {"VpcId": "{vpcId}", "Attribute": "enableDnsSupport"},
    "DescribeRouteTables": {"Filters": [{"Name": "vpc-id", "Values": ["{vpcId}"]}]},
}
_LATEST_VERSION = {"LaunchTemplateId": "{launchTemplateId}", "Versions": ["$Latest"]}

FUNCTIONS: Mapping[str, AwsFunction] = {
    # The provider also calls it as it is configured. As it knows the account then, it never asks for iam:GetUser or
    # iam:ListRoles.
    "aws:index/getCallerIdentity:getCallerIdentity": AwsFunction(
        "sts", "GetCallerIdentity", "sts/caller_identity_data_source.go",
        at="{accountId: Account, arn: Arn, userId: UserId, id: Account}",
    ),
    "aws:ec2/getVpc:getVpc": AwsFunction(
        "ec2", "DescribeVpcs", "ec2/vpc_data_source.go", filters=_VPC,
        at=f"Vpcs[].merge(@, {{cidrBlockAssociations: CidrBlockAssociationSet[].{_BLOCKS}}})", id="{vpcId}", one=True,
        unused_calls=_OF_VPC,
    ),
    "aws:ec2/getVpcs:getVpcs": AwsFunction(
        "ec2", "DescribeVpcs", "ec2/vpc_vpcs_data_source.go", filters=_VPC,
        at="{ids: Vpcs[].VpcId}", id="{region}",
    ),
    "aws:ec2/getSubnet:getSubnet": AwsFunction(
        "ec2", "DescribeSubnets", "ec2/vpc_subnet_data_source.go", filters=_SUBNET,
        at="Subnets[].merge(@, {arn: SubnetArn})", id="{subnetId}", one=True,
    ),
    "aws:ec2/getSubnets:getSubnets": AwsFunction(
        "ec2", "DescribeSubnets", "ec2/vpc_subnets_data_source.go", filters=_SUBNET,
        at="{ids: Subnets[].SubnetId}", id="{region}",
    ),
    "aws:ec2/getSecurityGroup:getSecurityGroup": AwsFunction(
        "ec2", "DescribeSecurityGroups", "ec2/vpc_security_group_data_source.go",
        filters={"id": "group-id", "name": "group-name", "vpcId": "vpc-id"},
        at="SecurityGroups[].merge(@, {arn: SecurityGroupArn, name: GroupName})", id="{groupId}", one=True,
    ),
    "aws:vpc/getSecurityGroupRule:getSecurityGroupRule": AwsFunction(
        "ec2", "DescribeSecurityGroupRules", "ec2/vpc_security_group_rule_data_source.go",
        {"SecurityGroupRuleIds": ["{securityGroupRuleId}"]},
        at="SecurityGroupRules[].merge(@, {arn: SecurityGroupRuleArn, securityGroupId: GroupId, "
        "referencedSecurityGroupId: ReferencedGroupInfo.GroupId})",
        id="{securityGroupRuleId}", one=True,
    ),
    "aws:vpc/getSecurityGroupRules:getSecurityGroupRules": AwsFunction(
        "ec2", "DescribeSecurityGroupRules", "ec2/vpc_security_group_rules_data_source.go",
        at="{ids: SecurityGroupRules[].SecurityGroupRuleId}", id="{region}",
    ),
    "aws:ec2/getRouteTable:getRouteTable": AwsFunction(
        "ec2", "DescribeRouteTables", "ec2/vpc_route_table_data_source.go", filters=_TABLE,
        at="RouteTables", id="{routeTableId}", one=True,
        unreached={"routes to interfaces": "DescribeNetworkInterfaces"},
    ),
    "aws:ec2/getRouteTables:getRouteTables": AwsFunction(
        "ec2", "DescribeRouteTables", "ec2/vpc_route_tables_data_source.go", filters=_TABLE,
        at="{ids: RouteTables[].RouteTableId}", id="{region}",
    ),
    "aws:ec2/getAmi:getAmi": AwsFunction(
        "ec2", "DescribeImages", "ec2/ec2_ami_data_source.go",
        {"Owners": "{owners}", "ExecutableUsers": "{executableUsers}"},
        at="sort_by(Images, &CreationDate)", id="{imageId}", one=True,
    ),
    "aws:ec2/getInstances:getInstances": AwsFunction(
        "ec2", "DescribeInstances", "ec2/ec2_instances_data_source.go",
        filters={"instanceStateNames": "instance-state-name"},
        # Leaves out instances of a killed attempt of this plugin, because the next attempt adopts them.
        at=f"{{ids: Reservations[].Instances[] | [?!(Tags[?Key=='{ATTEMPT_TAG}'])].InstanceId}}", id="{region}",
    ),
    "aws:ec2/getLaunchTemplate:getLaunchTemplate": AwsFunction(
        "ec2", "DescribeLaunchTemplates", "ec2/ec2_launch_template_data_source.go",
        {"LaunchTemplateNames": ["{name}"]},
        at="LaunchTemplates[].merge(@, {name: LaunchTemplateName, defaultVersion: DefaultVersionNumber, "
        "latestVersion: LatestVersionNumber})",
        id="{launchTemplateId}", one=True, unused_calls={"DescribeLaunchTemplateVersions": _LATEST_VERSION},
        unreached={"credits of burstable machines": "DescribeInstanceTypes"},
    ),
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": AwsFunction(
        "ec2", "DescribeInstanceTypeOfferings", "ec2/ec2_instance_type_offerings_data_source.go",
        {"LocationType": "{locationType}"},
        at=_OFFERED, id="{region}",
    ),
    "aws:index/getAvailabilityZones:getAvailabilityZones": AwsFunction(
        "ec2", "DescribeAvailabilityZones", "ec2/ec2_availability_zones_data_source.go",
        {"AllAvailabilityZones": "{allAvailabilityZones}"}, filters={"state": "state"},
        at=_ZONES, id="{region}",
    ),
    "aws:ssm/getParameter:getParameter": AwsFunction(
        "ssm", "GetParameter", "ssm/parameter_data_source.go",
        {"Name": "{name}", "WithDecryption": "{withDecryption}"},
        at="Parameter.merge(@, {arn: ARN})", id="{name}",
    ),
    # DescribeImages for most_recent_image_tags, since 5.13; a refusal is an error.
    "aws:ecr/getRepository:getRepository": AwsFunction(
        "ecr", "DescribeRepositories", "ecr/repository_data_source.go",
        {"repositoryNames": ["{name}"], "registryId": "{registryId}"},
        at="repositories[].merge(@, {name: repositoryName, arn: repositoryArn, repositoryUrl: repositoryUri})",
        id="{name}", one=True,
        unused_calls={
            "DescribeImages": {"repositoryName": "{name}", "registryId": "{registryId}"},
            "ListTagsForResource": {"resourceArn": "{arn}"},
        },
    ),
    # The provider survives a refusal of GetBucketWebsite.
    "aws:s3/getBucket:getBucket": AwsFunction(
        "s3", "HeadBucket", "s3/bucket_data_source.go", {"Bucket": "{bucket}"}, id="{bucket}",
        unused_calls={"GetBucketWebsite": {"Bucket": "{bucket}"}}, missing="AccessDenied NoSuchWebsiteConfiguration",
    ),
    "aws:iam/getRole:getRole": AwsFunction(
        "iam", "GetRole", "iam/role_data_source.go", {"RoleName": "{name}"},
        at="Role.merge(@, {name: RoleName, uniqueId: RoleId, assumeRolePolicy: AssumeRolePolicyDocument})",
        id="{name}",
    ),
    "aws:iam/getInstanceProfile:getInstanceProfile": AwsFunction(
        "iam", "GetInstanceProfile", "iam/instance_profile_data_source.go", {"InstanceProfileName": "{name}"},
        at="InstanceProfile.merge(@, {roleArn: Roles[0].Arn, roleId: Roles[0].RoleId, roleName: Roles[0].RoleName})",
        id="{instanceProfileId}",
    ),
    "aws:iam/getPolicy:getPolicy": AwsFunction(
        "iam", "GetPolicy", "iam/policy_data_source.go", {"PolicyArn": "{arn}"},
        at="Policy.merge(@, {name: PolicyName})", id="{arn}",
        unused_calls={"GetPolicyVersion": {"PolicyArn": "{arn}", "VersionId": "{defaultVersionId}"}},
        unreached={"policies by their name": "ListPolicies"},
    ),
    "aws:secretsmanager/getSecret:getSecret": AwsFunction(
        "secretsmanager", "DescribeSecret", "secretsmanager/secret_data_source.go", {"SecretId": "{secret}"},
        at="@.merge(@, {arn: ARN})", id="{arn}", unused_calls={"GetResourcePolicy": {"SecretId": "{arn}"}},
    ),
    "aws:cloudwatch/getLogGroup:getLogGroup": AwsFunction(
        "logs", "DescribeLogGroups", "logs/group_data_source.go", {"logGroupNamePrefix": "{name}"},
        at="logGroups[?logGroupName=='{name}'].merge(@, {name: logGroupName})", id="{name}", one=True,
        unused_calls={"ListTagsForResource": {"resourceArn": "{logGroupArn}"}}, before={"read": "ListTagsLogGroup"},
    ),
}  # fmt: skip
