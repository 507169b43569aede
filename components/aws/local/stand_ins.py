# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for existing resources that a stack file names. They are made once in the local AWS, and removed with the
last stack.

The rows of components/aws/types have the calls that find, make and delete a resource of a kind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import ip_network
from typing import Any, NamedTuple

from catalog.tables import table
from components.aws.client.aws_session import DEPLOYER, ask_aws, ask_aws_if_exists, local_aws_session
from components.aws.client.buckets import empty_bucket
from components.aws.statements import ANY, TRUST, VERSION
from components.aws.types import SERVED_TYPES
from components.aws.types.aws_resource_type import AwsResourceType, Creation, Deletion, LiveState, Read
from components.aws.types.templates import fill_template
from components.platform.calls import LocalCloud, Tell
from components.platform.local import network_around
from localcloud.aws.account import ACCOUNT, GROUPS
from schemas.each import lies_outside

RECORD = "stand-ins-aws.json"
# Says that a resource is a stand-in, and for what.
MARK = "trainyard-stands-in"
# The addresses of a VPC for which no stack file names a subnet's. A stand-in for a subnet takes a part of its VPC's.
_VPC_BLOCK, _SUBNET_BITS = "10.200.0.0/16", 20
_NO_CALL = Deletion("", {})


class _Calls(NamedTuple):
    """The calls of a kind that is no type of Pulumi's provider, or that nobody can delete. As in `AwsResourceType`."""

    service: str
    create: Creation
    reads: tuple[Read, ...] = ()
    delete: Deletion = _NO_CALL
    kind: str = ""
    live: LiveState | None = None


_BLOCK = SERVED_TYPES["aws:ec2/capacityReservation:CapacityReservation"]
_TYPES = {
    "vpc": "aws:ec2/vpc:Vpc", "subnet": "aws:ec2/subnet:Subnet", "route table": "aws:ec2/routeTable:RouteTable",
    "security group": "aws:ec2/securityGroup:SecurityGroup", "bucket": "aws:s3/bucket:Bucket",
    "repository": "aws:ecr/repository:Repository", "log group": "aws:cloudwatch/logGroup:LogGroup",
    "placement group": "aws:ec2/placementGroup:PlacementGroup", "policy": "aws:iam/policy:Policy",
    "role": "aws:iam/role:Role", "user role": "aws:iam/role:Role",
}  # fmt: skip
_CALLS: Mapping[str, AwsResourceType | _Calls] = {
    **{kind: SERVED_TYPES[token] for kind, token in _TYPES.items()},
    "group": _Calls(
        "iam", Creation("CreateGroup", "{name}"), (Read("GetGroup", {"GroupName": "{id}"}),),
        Deletion("DeleteGroup", {"GroupName": "{id}"}),
    ),
    "grant": _Calls(
        "iam", Creation("PutGroupPolicy", ""),
        delete=Deletion("DeleteGroupPolicy", {"GroupName": "{id}", "PolicyName": "{policy}"}),
    ),
    "parameter": _Calls(
        "ssm", Creation("PutParameter", "{name}"), (Read("GetParameter", {"Name": "{id}"}),),
        Deletion("DeleteParameter", {"Name": "{id}"}),
    ),
    "image": _Calls(
        "ec2", Creation("RegisterImage", ""), (Read("DescribeImages", {}, "Images[0]"),),
        live=LiveState(filter="image-id"),
    ),
    "capacity block": _Calls(
        "ec2", Creation("PurchaseCapacityBlock", _BLOCK.create.id, _BLOCK.create.created), _BLOCK.reads,
        kind=_BLOCK.kind,
    ),
}  # fmt: skip


class StandIns:
    """The stand-ins of one local cloud and region, by kind and by the name or id in stack files."""

    def __init__(self, cloud: LocalCloud, tell: Tell, region: str, zone: str = "") -> None:
        self.tell = tell
        self.region, self.zone = region, zone or f"{region}a"
        self._file = cloud.home / RECORD
        self._made: dict[str, str] = json.loads(self._file.read_text()) if self._file.exists() else {}
        self._cloud = cloud
        self._session = local_aws_session(cloud, DEPLOYER, region)

    def one(self, kind: str, name: str, **within: str) -> tuple[str, bool]:
        """The id or name of the resource in the local AWS, and whether it is a stand-in."""
        key = f"{self.region} {kind} {name}"
        if key in self._made:
            return self._made[key], True
        # AWS's own policies are there under their ARN; others are of the local account.
        own = f"arn:aws:iam::{ACCOUNT}:policy/{name.partition(':policy/')[2]}"
        for there in (name, own) if kind == "policy" else (name,):
            if self.is_there(kind, there):
                return there, False
        self._made[key] = _MAKE[kind](self, name, **within)
        self._write()
        return self._made[key], True

    def is_there(self, kind: str, name: str) -> bool:
        import jmespath

        calls = _CALLS[kind]
        read = calls.reads[0]
        parameters = fill_template(read.parameters, {"id": name})
        # EC2 refuses a list by ids that are not there.
        if calls.live and calls.live.filter:
            parameters = {"Filters": [{"Name": calls.live.filter, "Values": [name]}]}
        answer = self.find(f"Look for {name}", calls.service, read.operation, **parameters)
        return bool(answer and jmespath.search(fill_template(read.at, {"id": name}), answer))

    def make(self, kind: str, name: str, **request: Any) -> str:
        """Makes a resource of a kind. Returns its id, or its name if the kind has no other id."""
        import jmespath

        calls = _CALLS[kind]
        if calls.kind:
            tags = [{"Key": MARK, "Value": name}, {"Key": "Name", "Value": name}]
            request["TagSpecifications"] = [{"ResourceType": calls.kind, "Tags": tags}]
        answer = self.ask(f"Make a stand-in for the {kind} {name}", calls.service, calls.create.operation, **request)
        created = jmespath.search(calls.create.created, answer) or {}
        return str(fill_template(calls.create.id, created) or name)

    def grant(self, kind: str, name: str, policy: str, document: Mapping[str, Any]) -> bool:
        """Gives a role or group the access that the real one has.

        This changes stand-ins, and the groups that every local account has. Roles and groups that a user has made keep
        their own access: then it returns False.
        """
        if f"{self.region} {kind} {name}" not in self._made:
            if kind != "group" or name not in GROUPS:
                return False
            self._made[f"{self.region} grant {name}/{policy}"] = name
            self._write()
        holder = "Group" if kind == "group" else "Role"
        self.ask(
            f"Grant {policy} to the stand-in for {name}", "iam", f"Put{holder}Policy", **{f"{holder}Name": name},
            PolicyName=policy, PolicyDocument=json.dumps(document),
        )  # fmt: skip
        return True

    def remove(self, is_kept: Callable[[str, str], bool]) -> None:
        """Removes all stand-ins but those to keep, in reverse order: a resource before the one that contains it."""
        for key in reversed(list(self._made)):
            region, _, rest = key.partition(" ")
            # Kinds may contain spaces: `security group`.
            kind = next(one for one in sorted(_CALLS, key=len, reverse=True) if rest.startswith(f"{one} "))
            if is_kept(kind, self._made[key]):
                continue
            here = self if region == self.region else StandIns(self._cloud, self.tell, region)
            made, name = self._made.pop(key), rest.removeprefix(f"{kind} ")
            if empty := _EMPTY.get(kind):
                empty(here, made)
            calls, values = _CALLS[kind], {"id": made, "policy": name.removeprefix(f"{made}/"), "forceDelete": True}
            if delete := calls.delete.operation:
                parameters = fill_template(calls.delete.parameters, values)
                here.find(f"Remove the stand-in for the {kind} {name}", calls.service, delete, **parameters)
            self._write()

    def _write(self) -> None:
        draft = self._file.with_name(f"{RECORD}.{os.getpid()}")
        draft.write_text(json.dumps(self._made))
        draft.replace(self._file)

    def client(self, service: str) -> Any:
        return self._session.client(service)

    def ask(self, what: str, service: str, operation: str, **request: Any) -> Any:
        """The response to an operation, by its name in AWS's API."""
        return ask_aws(self.tell, what, self._call(service, operation, request))

    def find(self, what: str, service: str, operation: str, **request: Any) -> Any:
        """As `ask`, but None if the resource does not exist."""
        return ask_aws_if_exists(self.tell, what, self._call(service, operation, request))

    def _call(self, service: str, operation: str, request: Mapping[str, Any]) -> Callable[[], Any]:
        from botocore import xform_name

        return partial(getattr(self.client(service), xform_name(operation)), **request)


def widen_vpc(here: StandIns, vpc: str, cidr: str) -> None:
    """Stacks that share a VPC may have their subnets in different parts of it."""
    what = "Widen the stand-in for a VPC"
    there = here.ask(what, "ec2", "DescribeVpcs", VpcIds=[vpc])["Vpcs"][0]["CidrBlockAssociationSet"]
    if lies_outside(cidr, [row["CidrBlock"] for row in there]):
        here.ask(what, "ec2", "AssociateVpcCidrBlock", VpcId=vpc, CidrBlock=network_around(cidr))


def _make_vpc(here: StandIns, name: str, holds: str = "") -> str:
    """A VPC with an internet gateway, as nodes need it. `holds`: the addresses of a subnet that will be in it."""
    vpc, what = here.make("vpc", name, CidrBlock=network_around(holds) if holds else _VPC_BLOCK), "Make its way out"
    gateway = here.ask(what, "ec2", "CreateInternetGateway")["InternetGateway"]["InternetGatewayId"]
    here.ask(what, "ec2", "AttachInternetGateway", InternetGatewayId=gateway, VpcId=vpc)
    mine = [{"Name": "vpc-id", "Values": [vpc]}]
    for row in here.ask(what, "ec2", "DescribeRouteTables", Filters=mine)["RouteTables"]:
        _route_to_internet(here, row["RouteTableId"], gateway)
    return vpc


def _route_to_internet(here: StandIns, routes: str, gateway: str) -> None:
    way = {"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": gateway}
    here.ask("Route to the internet", "ec2", "CreateRoute", RouteTableId=routes, **way)


def _gateways_of_vpc(here: StandIns, vpc: str) -> list[str]:
    mine = [{"Name": "attachment.vpc-id", "Values": [vpc]}]
    answer = here.ask("Look for its way out", "ec2", "DescribeInternetGateways", Filters=mine)
    return [gateway["InternetGatewayId"] for gateway in answer["InternetGateways"]]


def _empty_vpc(here: StandIns, vpc: str) -> None:
    for gateway in _gateways_of_vpc(here, vpc):
        here.find("Detach its way out", "ec2", "DetachInternetGateway", InternetGatewayId=gateway, VpcId=vpc)
        here.find("Remove its way out", "ec2", "DeleteInternetGateway", InternetGatewayId=gateway)


def _make_subnet(here: StandIns, name: str, vpc: str) -> str:
    what, mine = "Look for free addresses", [{"Name": "vpc-id", "Values": [vpc]}]
    taken = [ip_network(row["CidrBlock"]) for row in here.ask(what, "ec2", "DescribeSubnets", Filters=mine)["Subnets"]]
    whole = ip_network(here.ask(what, "ec2", "DescribeVpcs", VpcIds=[vpc])["Vpcs"][0]["CidrBlock"])
    parts = whole.subnets(new_prefix=max(_SUBNET_BITS, whole.prefixlen))
    block = next(str(part) for part in parts if not any(part.overlaps(other) for other in taken))
    return here.make("subnet", name, VpcId=vpc, CidrBlock=block, AvailabilityZone=here.zone)


def _make_security_group(here: StandIns, name: str, vpc: str) -> str:
    """A security group for nodes with EFA: all traffic from and to itself, and HTTPS to AWS's services."""
    group = here.make("security group", name, GroupName=f"stand-in-{name}", Description="stands in", VpcId=vpc)
    everything = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group, "Description": "nodes"}]}]
    for side in ("Ingress", "Egress"):
        operation = f"AuthorizeSecurityGroup{side}"
        here.ask("Let its members reach each other", "ec2", operation, GroupId=group, IpPermissions=everything)
    return group


def _make_route_table(here: StandIns, name: str, vpc: str) -> str:
    routes = here.make("route table", name, VpcId=vpc)
    _route_to_internet(here, routes, _gateways_of_vpc(here, vpc)[0])
    return routes


def _make_bucket(here: StandIns, name: str) -> str:
    where = {} if here.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": here.region}}
    return here.make("bucket", name, Bucket=name, **where)


def _make_role(here: StandIns, name: str) -> str:
    """The nodes' role, with an instance profile of the same name, as AWS's console makes them."""
    here.make("role", name, RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))
    here.ask("Make its instance profile", "iam", "CreateInstanceProfile", InstanceProfileName=name)
    here.ask("Fill its profile", "iam", "AddRoleToInstanceProfile", InstanceProfileName=name, RoleName=name)
    return name


def _empty_role(here: StandIns, role: str) -> None:
    what, profile = "Remove its instance profile", {"InstanceProfileName": role}
    here.find(what, "iam", "RemoveRoleFromInstanceProfile", **profile, RoleName=role)
    here.find(what, "iam", "DeleteInstanceProfile", **profile)
    _remove_inline_policies(here, role, "Role")


def _remove_inline_policies(here: StandIns, name: str, holder: str) -> None:
    of = {f"{holder}Name": name}
    listed = here.find("List its policies", "iam", f"List{holder}Policies", **of)
    for policy in (listed or {}).get("PolicyNames", ()):
        here.find(f"Remove its policy {policy}", "iam", f"Delete{holder}Policy", **of, PolicyName=policy)


def _stand_in_image(here: StandIns, name: str) -> str:
    return str(table("aws_local")["image"][0]["id"])


def _buy_block(here: StandIns, name: str, machine: str) -> str:
    """As many machines as a block may have, for as long as one may last: stacks that share it may change and stay."""
    wanted = {"InstanceType": machine, "InstanceCount": 64, "CapacityDurationHours": 182 * 24}
    answer = here.ask(f"Look for a block of {machine}", "ec2", "DescribeCapacityBlockOfferings", **wanted)
    offerings = answer["CapacityBlockOfferings"]
    if not offerings:  # no zone of the region has the machines, which `up` says
        return name
    # Where the zone that the file names has none, `up` says in which one the block lies, as on AWS.
    offering = min(offerings, key=lambda one: one["AvailabilityZone"] != here.zone)["CapacityBlockOfferingId"]
    return here.make("capacity block", name, CapacityBlockOfferingId=offering, InstancePlatform="Linux/UNIX")


def _make_policy(here: StandIns, arn: str) -> str:
    path, _, name = arn.partition(":policy")[2].rpartition("/")
    everything = {"Version": VERSION, "Statement": {"Effect": "Allow", "Action": ANY, "Resource": ANY}}
    return here.make("policy", name, PolicyName=name, Path=f"{path}/", PolicyDocument=json.dumps(everything))


_MAKE: Mapping[str, Callable[..., str]] = {
    "vpc": _make_vpc,
    "subnet": _make_subnet,
    "security group": _make_security_group,
    "route table": _make_route_table,
    "bucket": _make_bucket,
    "role": _make_role,
    "user role": _make_role,
    "policy": _make_policy,
    "image": _stand_in_image,
    "capacity block": _buy_block,
    "parameter": lambda here, name: here.make(
        "parameter", name, Name=name, Value=_stand_in_image(here, name), Type="String"
    ),
    "repository": lambda here, name: here.make("repository", name, repositoryName=name),
    "log group": lambda here, name: here.make("log group", name, logGroupName=name),
    "group": lambda here, name: here.make("group", name, GroupName=name),
    "placement group": lambda here, name: here.make("placement group", name, GroupName=name, Strategy="cluster"),
}
# What has to go before a resource can be deleted.
_EMPTY: Mapping[str, Callable[[StandIns, str], object]] = {
    "vpc": _empty_vpc,
    "bucket": lambda here, bucket: empty_bucket(here.client("s3"), here.tell, bucket),
    "role": _empty_role,
    "user role": _empty_role,
    "group": lambda here, group: _remove_inline_policies(here, group, "Group"),
}
