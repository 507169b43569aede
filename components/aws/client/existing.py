# SPDX-License-Identifier: Apache-2.0
"""Reads existing resources of an account for a new stack file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from components.aws.client.aws_session import ask_aws, ask_aws_if_exists, aws_session_of_caller
from components.aws.types import SERVED_TYPES
from components.aws.types.aws_resource_type import AwsResourceType
from components.aws.types.templates import fill_template
from components.platform.calls import ProviderError
from components.platform.client import Where
from components.platform.existing import ExistingError, ExistingResources, FoundIds, FoundResources, free_block
from components.platform.review import ReviewedResource, Snapshot

_ARN = re.compile(r"arn:(aws[a-z-]*):([a-z0-9-]+):([a-z0-9-]*):([0-9]*):(.+)")
_EC2_ID = re.compile(r"(vpc|subnet|sg)-[0-9a-f]+")
_KINDS = "a VPC, subnet, security group, bucket, repository of ECR, log group or role"
# Ids that follow from inputs. The others are looked up below.
_NAMED: Mapping[str, str] = {
    "aws:cloudwatch/logGroup:LogGroup": "{name}",
    "aws:ecr/repository:Repository": "{name}",
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": "{repository}",
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment": "{group}/{policyArn}",
    "aws:iam/instanceProfile:InstanceProfile": "{name}",
    "aws:iam/policy:Policy": "{arn}:policy/{name}",
    "aws:iam/role:Role": "{name}",
    "aws:iam/rolePolicy:RolePolicy": "{role}:{name}",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": "{role}/{policyArn}",
    "aws:s3/bucket:Bucket": "{bucket}",
    **{
        f"aws:s3/bucket{part}:Bucket{part}": "{bucket}"
        for part in (
            "LifecycleConfiguration", "OwnershipControls", "Policy", "PublicAccessBlock",
            "ServerSideEncryptionConfiguration", "Versioning",
        )
    },
}  # fmt: skip
_INSIDE, _CALLED = {"vpc-id": "{vpcId}"}, {"tag:Name": "{Name}"}
# EC2's: the call, where its rows and their ids are, and filters from inputs.
_LOOKED_UP: Mapping[str, tuple[str, str, str, Mapping[str, str]]] = {
    "aws:ec2/vpc:Vpc": ("describe_vpcs", "Vpcs", "VpcId", _CALLED),
    "aws:ec2/subnet:Subnet": ("describe_subnets", "Subnets", "SubnetId", {**_INSIDE, **_CALLED}),
    "aws:ec2/securityGroup:SecurityGroup": (
        "describe_security_groups", "SecurityGroups", "GroupId", {**_INSIDE, "group-name": "{name}"},
    ),
    "aws:ec2/routeTable:RouteTable": ("describe_route_tables", "RouteTables", "RouteTableId", {**_INSIDE, **_CALLED}),
    "aws:ec2/internetGateway:InternetGateway": (
        "describe_internet_gateways", "InternetGateways", "InternetGatewayId", {"attachment.vpc-id": "{vpcId}"},
    ),
    "aws:ec2/natGateway:NatGateway": (
        "describe_nat_gateways", "NatGateways", "NatGatewayId", {"subnet-id": "{subnetId}", **_CALLED},
    ),
    "aws:ec2/eip:Eip": ("describe_addresses", "Addresses", "AllocationId", _CALLED),
    "aws:ec2/vpcEndpoint:VpcEndpoint": (
        "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId", {**_INSIDE, "service-name": "{serviceName}"},
    ),
}  # fmt: skip
_ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
_ROUTE = "aws:ec2/route:Route"
_RULES = {
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": True,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": False,
}
_GONE = frozenset({"deleted", "deleting", "failed"})
# `up` makes what belongs to jobs.
_PREFIXES = ("aws:ec2/", "aws:ecr/", "aws:iam/", "aws:s3/", "aws:vpc/", "aws:cloudwatch/")
_NOT_IMPORTED = frozenset({"aws:s3/bucketObjectv2:BucketObjectv2"})


class AwsExistingResources(ExistingResources):
    def read(self, ids: Sequence[str], where: Where, manages: bool) -> FoundResources:
        reader = _Reader(where, manages)
        # A group, then the subnet that needs it, then the VPC that says less.
        order = ("sg-", "subnet-", "vpc-")
        for one in sorted(ids, key=lambda one: next((at for at, part in enumerate(order) if part in one), -1)):
            reader.add(one)
        return reader.found

    def find_ids(self, snapshot: Snapshot, ids: Sequence[str], where: Where) -> FoundIds:
        return _IdFinder(where, ids).find(snapshot)


def _tags_by_key(rows: Sequence[Mapping[str, str]] | None) -> dict[str, str]:
    return {row["Key"]: row["Value"] for row in rows or ()}


def _subnet_keys(row: Mapping[str, Any]) -> dict[str, str]:
    return {"subnetCidr": row["CidrBlock"], "zone": row["AvailabilityZone"]}


class _Reader:
    def __init__(self, where: Where, manages: bool) -> None:
        self._where, self._manages = where, manages
        self._session = aws_session_of_caller(where)
        self.found = FoundResources()

    def _get(self, what: str, service: str, operation: str, **request: Any) -> Any:
        call = partial(getattr(self._session.client(service), operation), **request)
        answer = ask_aws_if_exists(self._where.tell, f"Read {what}", call)
        if answer is None:
            raise ExistingError(
                f"There is no {what} in this account and region.",
                "Correct the id, or name another profile with --profile, or another region with --set region=REGION.",
            )
        return answer

    def add(self, named: str) -> None:
        service, resource = "ec2", named
        if arn := _ARN.fullmatch(named):
            service, resource = arn[2], arn[5]
            if arn[4]:
                self._require_account(named, arn[4])
        kind, _, name = resource.partition("/")
        if _EC2_ID.fullmatch(resource):
            kind, name = resource.partition("-")[0], resource
        match service, kind:
            case "ec2", "vpc":
                self._vpc(name)
            case "ec2", "subnet":
                self._subnet(name)
            case "ec2", "sg" | "security-group":
                self._get(f"security group {name}", "ec2", "describe_security_groups", GroupIds=[name])
                if not self._manages:
                    self.found.add("trainyard:network", {"securityGroup": name})
            case "s3", _:
                self._bucket(kind)
            case "ecr", "repository":
                self._repository(name)
            case "iam", "role":
                self._role(name.rpartition("/")[2])
            case "logs", _ if resource.startswith("log-group:"):
                self._log_group(resource.split(":")[1])
            case _:
                raise ExistingError(f"`{named[:100]}` cannot be used.", f"--existing reads ids and ARNs of {_KINDS}.")

    def _require_account(self, named: str, account: str) -> None:
        own = str(self._get("caller", "sts", "get_caller_identity")["Account"])
        if account != own:
            raise ExistingError(
                f"{named} is of the account {account}, and your credentials are of {own}.",
                "Name a resource of your account, or another profile with --profile.",
            )

    def _vpc(self, name: str) -> None:
        row = self._get(f"VPC {name}", "ec2", "describe_vpcs", VpcIds=[name])["Vpcs"][0]
        inside = [{"Name": "vpc-id", "Values": [name]}]
        subnets = self._get("subnets", "ec2", "describe_subnets", Filters=inside)["Subnets"]
        if self._manages:
            keys: dict[str, Any] = {"cidr": row["CidrBlock"]}
            if self._get("NAT gateways", "ec2", "describe_nat_gateways", Filter=inside)["NatGateways"]:
                keys["nat"] = True
            # The subnet of a NAT gateway is the only other one that trainyard makes.
            nodes = [one for one in subnets if _tags_by_key(one.get("Tags")).get("Name", "").endswith("-nodes")]
            if len(nodes) == 1:
                keys |= _subnet_keys(nodes[0])
        elif "subnet" in self.found.keys.get("trainyard:network", {}):
            return
        else:
            free = free_block([row["CidrBlock"]], [one["CidrBlock"] for one in subnets])
            if free is None:
                raise ExistingError(f"The VPC {name} has no room for a subnet.", "Name a subnet of it instead.")
            keys = {"vpc": name, "subnetCidr": free}
        self.found.add("trainyard:network", keys, _tags_by_key(row.get("Tags")))

    def _subnet(self, name: str) -> None:
        row = self._get(f"subnet {name}", "ec2", "describe_subnets", SubnetIds=[name])["Subnets"][0]
        if self._manages:
            self._vpc(row["VpcId"])
            self.found.add("trainyard:network", _subnet_keys(row))
            return
        group = self.found.keys.pop("trainyard:network", {}).get("securityGroup")
        if group is None:
            group = self._group_of_subnet(row)
        self.found.add("trainyard:network", {"subnet": name, "securityGroup": group}, _tags_by_key(row.get("Tags")))

    def _group_of_subnet(self, subnet: Mapping[str, Any]) -> str:
        """The security group for the nodes: the one that trainyard made, or the VPC's only other one."""
        inside = [{"Name": "vpc-id", "Values": [subnet["VpcId"]]}]
        groups = self._get("security groups", "ec2", "describe_security_groups", Filters=inside)["SecurityGroups"]
        own = [one for one in groups if one["GroupName"] != "default"]
        nodes = [one for one in own if one["GroupName"].endswith("-nodes")]
        chosen = nodes if len(nodes) == 1 else own
        if len(chosen) != 1:
            raise ExistingError(
                f"The subnet {subnet['SubnetId']} needs a security group for its nodes, and its VPC has {len(own)}.",
                "Name that group too: --existing sg-….",
            )
        return str(chosen[0]["GroupId"])

    def _bucket(self, name: str) -> None:
        self._get(f"bucket {name}", "s3", "head_bucket", Bucket=name)
        self.found.add("trainyard:bucket", {"name": name} if self._manages else {"existing": name})

    def _repository(self, name: str) -> None:
        answer = self._get(f"repository {name}", "ecr", "describe_repositories", repositoryNames=[name])
        row = answer["repositories"][0]
        keys: dict[str, Any] = {"existing": name}
        if self._manages:
            fixed = {"immutable": True} if row.get("imageTagMutability") == "IMMUTABLE" else {}
            keys = {"repository": name, **fixed}
        tags = self._get("tags", "ecr", "list_tags_for_resource", resourceArn=row["repositoryArn"]).get("tags")
        self.found.add("trainyard:registry", keys, _tags_by_key(tags))

    def _role(self, name: str) -> None:
        role = self._get(f"role {name}", "iam", "get_role", RoleName=name)["Role"]
        keys = {} if self._manages else {"existing": True, "runs": name}
        self.found.add("trainyard:access", keys, _tags_by_key(role.get("Tags")))
        if not self._manages:
            self.found.remarks.append(
                f"the policies of {name} are not made by the stack: `trainyard access` prints what it needs"
            )

    def _log_group(self, name: str) -> None:
        groups = self._get("log groups", "logs", "describe_log_groups", logGroupNamePrefix=name)["logGroups"]
        row = next((one for one in groups if one["logGroupName"] == name), None)
        if row is None or not self._manages:
            raise ExistingError(
                f"The log group {name} is not there." if row is None else f"A stack cannot use the log group {name}.",
                "On AWS a stack makes its own log group; with --import it takes over the one that it made.",
            )
        days = row.get("retentionInDays")
        self.found.add("trainyard:logs", {"retentionDays": days} if days else {})


class _IdFinder:
    """Finds what a program would make by its names and tags, inside its VPC."""

    def __init__(self, where: Where, ids: Sequence[str]) -> None:
        self._where, self._session = where, aws_session_of_caller(where)
        self._named = {name.rpartition("/")[2] for name in ids}
        identity = ask_aws(where.tell, "Read the caller", self._session.client("sts").get_caller_identity)
        self._account, self._partition = str(identity["Account"]), str(identity["Arn"]).split(":")[1]

    def find(self, snapshot: Snapshot) -> FoundIds:
        ids, missing = dict[str, str](), list[str]()
        # Recorded ids stand for those that the cloud gives. They are replaced as these become known.
        known: dict[str, str] = {}
        waiting = [
            one
            for one in snapshot.resources
            if one.custom and one.type.startswith(_PREFIXES) and one.type not in _NOT_IMPORTED
        ]
        while waiting:
            recorded = {one.id for one in waiting if one.type not in _NAMED}
            ready = [one for one in waiting if not recorded & set(_texts_in(one.inputs)) - {one.id}] or waiting
            for resource in ready:
                found = self._id_of(resource, _with_known_ids(resource.inputs, known, self._account))
                if resource.type not in _NAMED:
                    # Without an id, whatever lies inside it is not looked for.
                    known[resource.id] = found
                if found:
                    ids[resource.urn] = found
                else:
                    missing.append(f"{resource.type.rpartition(':')[2]} {resource.name}")
            waiting = [one for one in waiting if one not in ready]
        return FoundIds(ids, tuple(missing), "pulumi_aws")

    def _id_of(self, resource: ReviewedResource, inputs: Mapping[str, Any]) -> str:
        name = (inputs.get("tags") or {}).get("Name", "")
        values = {**inputs, "Name": name, "arn": f"arn:{self._partition}:iam::{self._account}"}
        row = SERVED_TYPES.get(resource.type)
        if template := _NAMED.get(resource.type):
            text = str(fill_template(template, values))
            return text if row is not None and self._exists(row, text, inputs) else ""
        if resource.type in _RULES:
            return self._rule(inputs, _RULES[resource.type])
        if resource.type == _ASSOCIATION:
            return self._association(inputs)
        if resource.type == _ROUTE:
            return f"{inputs['routeTableId']}_{inputs['destinationCidrBlock']}" if inputs["routeTableId"] else ""
        if resource.type not in _LOOKED_UP:
            return ""
        operation, key, identity, filters = _LOOKED_UP[resource.type]
        wanted = {filter_: str(fill_template(template, values) or "") for filter_, template in filters.items()}
        if not all(wanted.values()):
            return ""
        rows = self._describe(operation, key, wanted)
        if resource.type == "aws:ec2/vpc:Vpc":
            named = [row for row in self._describe(operation, key, {}) if row[identity] in self._named]
            rows = named or rows
        return str(rows[0][identity]) if len(rows) == 1 else ""

    def _describe(self, operation: str, key: str, wanted: Mapping[str, str]) -> list[Any]:
        filters = [{"Name": name, "Values": [value]} for name, value in wanted.items()]
        # The API of NAT gateways has another name for it.
        argument = "Filter" if operation == "describe_nat_gateways" else "Filters"
        call = partial(getattr(self._session.client("ec2"), operation), **({argument: filters} if filters else {}))
        rows = ask_aws(self._where.tell, f"Call {operation}", call)[key]
        return [row for row in rows if str(row.get("State", "")).lower() not in _GONE]

    def _exists(self, row: AwsResourceType, identity: str, inputs: Mapping[str, Any]) -> bool:
        """Whether the first call of the type's row finds it."""
        import jmespath
        from botocore import xform_name

        read = row.reads[0]
        values = {**inputs, "id": identity, "account": self._account, "region": self._session.region_name}
        call = partial(
            getattr(self._session.client(row.service), xform_name(read.operation)),
            **fill_template(read.parameters, values),
        )
        try:
            answer = ask_aws_if_exists(self._where.tell, f"Call {read.operation}", call)
        except ProviderError as error:
            if any(code in str(error.__cause__) for code in read.missing.split()):
                return False
            raise
        return answer is not None and bool(jmespath.search(str(fill_template(read.at, values)), answer))

    def _rule(self, inputs: Mapping[str, Any], egress: bool) -> str:
        if not inputs["securityGroupId"]:
            return ""
        rows = self._describe(
            "describe_security_group_rules", "SecurityGroupRules", {"group-id": str(inputs["securityGroupId"])}
        )
        peers = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
        wanted = [inputs.get(key) for key in ("ipProtocol", "fromPort", "toPort", "description")]
        for row in rows:
            ports = [None if row.get(key) == -1 else row.get(key) for key in ("FromPort", "ToPort")]
            has = [row["IpProtocol"], *ports, row.get("Description")]
            reached = {
                "cidrIpv4": row.get("CidrIpv4"), "cidrIpv6": row.get("CidrIpv6"),
                "prefixListId": row.get("PrefixListId"),
                "referencedSecurityGroupId": (row.get("ReferencedGroupInfo") or {}).get("GroupId"),
            }  # fmt: skip
            # What a recording says of a prefix list is a stand-in.
            same_peer = all(
                reached[key] == inputs.get(key) or (key == "prefixListId" and reached[key] and inputs.get(key))
                for key in peers
            )
            if row["IsEgress"] is egress and has == wanted and same_peer:
                return str(row["SecurityGroupRuleId"])
        return ""

    def _association(self, inputs: Mapping[str, Any]) -> str:
        if not (inputs.get("subnetId") and inputs.get("routeTableId")):
            return ""
        wanted = {"association.subnet-id": inputs["subnetId"], "route-table-id": inputs["routeTableId"]}
        for table in self._describe("describe_route_tables", "RouteTables", wanted):
            for one in table["Associations"]:
                if one.get("SubnetId") == inputs["subnetId"]:
                    # As Pulumi's id of an association in an import.
                    return f"{inputs['subnetId']}/{inputs['routeTableId']}"
        return ""


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts_in(item)


def _with_known_ids(value: Any, known: Mapping[str, str], account: str) -> Any:
    """The inputs with real ids in place of recorded ones, and with the account that a recording does not know."""
    if isinstance(value, str):
        return known.get(value, value).replace("(unknown) account", account)
    if isinstance(value, Mapping):
        return {key: _with_known_ids(item, known, account) for key, item in value.items()}
    return [_with_known_ids(item, known, account) for item in value] if isinstance(value, list | tuple) else value


EXISTING = AwsExistingResources()
