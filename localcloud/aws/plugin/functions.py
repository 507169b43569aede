# SPDX-License-Identifier: Apache-2.0
"""The provider's functions, such as `getVpc`: a row for each, and one implementation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.platform.calls import Call, ProviderError, Stop
from components.platform.values import Properties
from components.s3 import attempt, code_of
from localcloud.aws.plugin.rows import fill
from localcloud.aws.plugin.session import ATTEMPT, AwsSession, visible
from localcloud.aws.plugin.shapes import search, to_pulumi
from provider.base.resource import Function
from provider.base.wire import Engine, UrnReporter


@dataclass(frozen=True)
class Lookup:
    """A function that finds something by one call."""

    service: str
    operation: str
    # Parameters as templates of arguments. A parameter is left out if its argument is missing.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # Argument -> the filter of the operation that it sets.
    filters: Mapping[str, str] = field(default_factory=dict)
    # A JMESPath in the response: the properties of the result, by their Pulumi names or the API's.
    at: str = "@"
    id: str = "{id}"
    # Whether exactly one result is required.
    one: bool = False
    # Calls of the real provider whose responses are not needed here: operation -> templates of parameters.
    unused_calls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Error codes with which these calls say that something does not exist.
    missing: frozenset[str] = frozenset()


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
_ABSENT = frozenset({"AccessDenied", "NoSuchWebsiteConfiguration"})

FUNCTIONS: Mapping[str, Lookup] = {
    "aws:index/getCallerIdentity:getCallerIdentity": Lookup(
        "sts", "GetCallerIdentity", at="{accountId: Account, arn: Arn, userId: UserId, id: Account}"
    ),
    "aws:ec2/getVpc:getVpc": Lookup(
        "ec2",
        "DescribeVpcs",
        filters=_VPC,
        at=f"Vpcs[].merge(@, {{cidrBlockAssociations: CidrBlockAssociationSet[].{_BLOCKS}}})",
        id="{vpcId}",
        one=True,
        unused_calls=_OF_VPC,
    ),
    "aws:ec2/getVpcs:getVpcs": Lookup("ec2", "DescribeVpcs", filters=_VPC, at="{ids: Vpcs[].VpcId}", id="{region}"),
    "aws:ec2/getSubnet:getSubnet": Lookup(
        "ec2", "DescribeSubnets", filters=_SUBNET, at="Subnets[].merge(@, {arn: SubnetArn})", id="{subnetId}", one=True
    ),
    "aws:ec2/getSubnets:getSubnets": Lookup(
        "ec2", "DescribeSubnets", filters=_SUBNET, at="{ids: Subnets[].SubnetId}", id="{region}"
    ),
    "aws:ec2/getSecurityGroup:getSecurityGroup": Lookup(
        "ec2",
        "DescribeSecurityGroups",
        filters={"id": "group-id", "name": "group-name", "vpcId": "vpc-id"},
        at="SecurityGroups[].merge(@, {arn: SecurityGroupArn, name: GroupName})",
        id="{groupId}",
        one=True,
    ),
    "aws:vpc/getSecurityGroupRule:getSecurityGroupRule": Lookup(
        "ec2",
        "DescribeSecurityGroupRules",
        {"SecurityGroupRuleIds": ["{securityGroupRuleId}"]},
        at="SecurityGroupRules[].merge(@, {arn: SecurityGroupRuleArn, securityGroupId: GroupId, "
        "referencedSecurityGroupId: ReferencedGroupInfo.GroupId})",
        id="{securityGroupRuleId}",
        one=True,
    ),
    "aws:vpc/getSecurityGroupRules:getSecurityGroupRules": Lookup(
        "ec2", "DescribeSecurityGroupRules", at="{ids: SecurityGroupRules[].SecurityGroupRuleId}", id="{region}"
    ),
    "aws:ec2/getRouteTable:getRouteTable": Lookup(
        "ec2", "DescribeRouteTables", filters=_TABLE, at="RouteTables", id="{routeTableId}", one=True
    ),
    "aws:ec2/getRouteTables:getRouteTables": Lookup(
        "ec2", "DescribeRouteTables", filters=_TABLE, at="{ids: RouteTables[].RouteTableId}", id="{region}"
    ),
    "aws:ec2/getAmi:getAmi": Lookup(
        "ec2",
        "DescribeImages",
        {"Owners": "{owners}", "ExecutableUsers": "{executableUsers}"},
        at="sort_by(Images, &CreationDate)",
        id="{imageId}",
        one=True,
    ),
    "aws:ec2/getInstances:getInstances": Lookup(
        "ec2",
        "DescribeInstances",
        filters={"instanceStateNames": "instance-state-name"},
        # Leaves out instances of a killed attempt of this plugin, because the next attempt adopts them.
        at=f"{{ids: Reservations[].Instances[] | [?!(Tags[?Key=='{ATTEMPT}'])].InstanceId}}",
        id="{region}",
    ),
    "aws:ec2/getLaunchTemplate:getLaunchTemplate": Lookup(
        "ec2",
        "DescribeLaunchTemplates",
        {"LaunchTemplateNames": ["{name}"]},
        at="LaunchTemplates[].merge(@, {name: LaunchTemplateName, defaultVersion: DefaultVersionNumber, "
        "latestVersion: LatestVersionNumber})",
        id="{launchTemplateId}",
        one=True,
        unused_calls={"DescribeLaunchTemplateVersions": _LATEST_VERSION},
    ),
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": Lookup(
        "ec2", "DescribeInstanceTypeOfferings", {"LocationType": "{locationType}"}, at=_OFFERED, id="{region}"
    ),
    "aws:index/getAvailabilityZones:getAvailabilityZones": Lookup(
        "ec2",
        "DescribeAvailabilityZones",
        {"AllAvailabilityZones": "{allAvailabilityZones}"},
        filters={"state": "state"},
        at=_ZONES,
        id="{region}",
    ),
    "aws:ssm/getParameter:getParameter": Lookup(
        "ssm",
        "GetParameter",
        {"Name": "{name}", "WithDecryption": "{withDecryption}"},
        at="Parameter.merge(@, {arn: ARN})",
        id="{name}",
    ),
    "aws:ecr/getRepository:getRepository": Lookup(
        "ecr",
        "DescribeRepositories",
        {"repositoryNames": ["{name}"], "registryId": "{registryId}"},
        at="repositories[].merge(@, {name: repositoryName, arn: repositoryArn, repositoryUrl: repositoryUri})",
        id="{name}",
        one=True,
        unused_calls={
            "DescribeImages": {"repositoryName": "{name}", "registryId": "{registryId}"},
            "ListTagsForResource": {"resourceArn": "{arn}"},
        },
    ),
    "aws:s3/getBucket:getBucket": Lookup(
        "s3",
        "HeadBucket",
        {"Bucket": "{bucket}"},
        id="{bucket}",
        unused_calls={"GetBucketWebsite": {"Bucket": "{bucket}"}},
        missing=_ABSENT,
    ),
    "aws:iam/getRole:getRole": Lookup(
        "iam",
        "GetRole",
        {"RoleName": "{name}"},
        at="Role.merge(@, {name: RoleName, uniqueId: RoleId, assumeRolePolicy: AssumeRolePolicyDocument})",
        id="{name}",
    ),
    "aws:iam/getInstanceProfile:getInstanceProfile": Lookup(
        "iam",
        "GetInstanceProfile",
        {"InstanceProfileName": "{name}"},
        at="InstanceProfile.merge(@, {roleArn: Roles[0].Arn, roleId: Roles[0].RoleId, roleName: Roles[0].RoleName})",
        id="{instanceProfileId}",
    ),
    "aws:iam/getPolicy:getPolicy": Lookup(
        "iam",
        "GetPolicy",
        {"PolicyArn": "{arn}"},
        at="Policy.merge(@, {name: PolicyName})",
        id="{arn}",
        unused_calls={"GetPolicyVersion": {"PolicyArn": "{arn}", "VersionId": "{defaultVersionId}"}},
    ),
    "aws:secretsmanager/getSecret:getSecret": Lookup(
        "secretsmanager",
        "DescribeSecret",
        {"SecretId": "{secret}"},
        at="@.merge(@, {arn: ARN})",
        id="{arn}",
        unused_calls={"GetResourcePolicy": {"SecretId": "{arn}"}},
    ),
    "aws:cloudwatch/getLogGroup:getLogGroup": Lookup(
        "logs",
        "DescribeLogGroups",
        {"logGroupNamePrefix": "{name}"},
        at="logGroups[?logGroupName=='{name}'].merge(@, {name: logGroupName})",
        id="{name}",
        one=True,
        unused_calls={"ListTagsForResource": {"resourceArn": "{logGroupArn}"}},
    ),
}
_PARTITION = {
    "partition": "aws", "id": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"
}  # fmt: skip
# Functions that make no call. Each gets the region.
PLACES: Mapping[str, Callable[[str], Properties]] = {
    "aws:index/getRegion:getRegion": lambda region: {"region": region, "name": region, "id": region},
    "aws:index/getPartition:getPartition": lambda region: dict(_PARTITION),
}


def function(token: str, session: Callable[[], AwsSession]) -> Function | None:
    if token in PLACES:
        return lambda args: {**args, **PLACES[token](args.get("region") or session().region_name)}
    lookup = FUNCTIONS.get(token)
    return None if lookup is None else lambda args: look_up(token, lookup, session(), args)


def look_up(token: str, lookup: Lookup, session: AwsSession, args: Properties) -> Properties:
    call = Call("", token, token, UrnReporter(Engine(), "", frozenset()), Stop())
    values = {**args, "region": args.get("region") or session.region_name}
    if token.endswith("getParameter") and args.get("withDecryption") is None:
        values["withDecryption"] = True
    if token.endswith("getSecret:getSecret"):
        values["secret"] = args.get("arn") or args.get("name")
    parameters = {key: value for key, value in fill(lookup.parameters, values).items() if value not in (None, [None])}
    filters = _filters(lookup, args)
    parameters |= {"Filters": filters} if filters else {}
    answer = attempt(
        call,
        token.rsplit(":", 1)[-1],
        lambda: session.ask(lookup.service, values["region"], lookup.operation, parameters),
    )
    matches = search(fill(lookup.at, values), answer)
    model = _only(token, matches, args) if lookup.one else matches
    _make_unused_calls(call, lookup, session, {**values, **to_pulumi(model, {})})
    return _result(lookup, model, values, args)


def _make_unused_calls(call: Call, lookup: Lookup, session: AwsSession, values: Properties) -> None:
    for operation, template in lookup.unused_calls.items():
        parameters = {key: value for key, value in fill(template, values).items() if value is not None}

        def ask(operation: str = operation, parameters: Properties = parameters) -> object:
            try:
                return session.ask(lookup.service, values["region"], operation, parameters)
            except Exception as error:
                if code_of(error) in lookup.missing:
                    return None
                raise

        attempt(call, f"{call.name.rsplit(':', 1)[-1]}: {operation}", ask)


def _filters(lookup: Lookup, args: Properties) -> list[Properties]:
    given = {name: _words(args[key]) for key, name in lookup.filters.items() if args.get(key) is not None}
    tags = args.get("tags") or args.get("instanceTags") or {}
    given |= {f"tag:{key}": [value] for key, value in tags.items()}
    given |= {one["name"]: list(one["values"]) for one in args.get("filters") or ()}
    return [{"Name": name, "Values": values} for name, values in given.items()]


def _words(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in values]


def _only(token: str, matches: Any, args: Properties) -> Any:
    name = token.rsplit(":", 1)[-1]
    items = list(matches or ())
    if not items:
        raise ProviderError(f"{name}: there are no results.", "Correct the arguments or the region.")
    if len(items) > 1 and not args.get("mostRecent"):
        raise ProviderError(f"{name}: there are {len(items)} results, and one is needed.", "Give more arguments.")
    return items[-1]


def _result(lookup: Lookup, model: Properties, values: Properties, args: Properties) -> Properties:
    live = {key: value for key, value in to_pulumi(model, {}).items() if value is not None}
    live.pop("responseMetadata", None)
    if isinstance(live.get("tags"), Mapping):
        live["tags"] = visible(live["tags"])
    result = {**args, **live, "region": values["region"]}
    if lookup.operation == "HeadBucket":
        bucket = args["bucket"]
        result |= {"arn": f"arn:aws:s3:::{bucket}", "bucketDomainName": f"{bucket}.s3.amazonaws.com"}
        result["bucketRegion"] = result.get("bucketRegion") or values["region"]
    return {**result, "id": str(live.get("id") or fill(lookup.id, {**result, **model}) or "")}
