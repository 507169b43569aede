# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for existing resources that a stack file names. They are made once in the local AWS, and removed with the
last stack."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import ip_network
from typing import Any

from components.aws.client.aws_session import DEPLOYER, ask_aws, ask_aws_if_exists, local_aws_session
from components.aws.local.removal import empty_bucket
from components.platform.calls import LocalCloud, Tell
from components.platform.local import network_around
from localcloud.aws.account import ACCOUNT, GROUPS
from schemas.each import lies_outside

RECORD = "stand-ins-aws.json"
# Only resources with this tag are removed: users may make resources with the same names.
MARK = "trainyard-stands-in"
# The addresses of a VPC for which no stack file names a subnet's. A stand-in for a subnet takes a part of its VPC's.
_VPC_BLOCK, _SUBNET_BITS = "10.200.0.0/16", 20
_NODES = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}  # fmt: skip


class StandIns:
    """The stand-ins of one local cloud and region, by kind and by the name or id in stack files."""

    def __init__(self, cloud: LocalCloud, tell: Tell, region: str, zone: str = "") -> None:
        self._tell = tell
        self._region, self._zone = region, zone
        self._file = cloud.home / RECORD
        self._made: dict[str, str] = json.loads(self._file.read_text()) if self._file.exists() else {}
        self._cloud = cloud
        self._session = local_aws_session(cloud, DEPLOYER, region)

    def one(self, kind: str, name: str, **within: str) -> tuple[str, bool]:
        """The id or name of the resource in the local AWS, and whether it is a stand-in."""
        key = f"{self._region} {kind} {name}"
        if key in self._made:
            return self._made[key], True
        if there := _THERE[kind](self, name):
            return there, False
        self._made[key] = _MAKE[kind](self, name, **within)
        self._write()
        return self._made[key], True

    def grant(self, kind: str, name: str, policy: str, document: Mapping[str, Any]) -> bool:
        """Gives a role or group the access that the real one has.

        This changes stand-ins, and the groups that every local account has. Roles and groups that a user has made keep
        their own access: then it returns False.
        """
        if f"{self._region} {kind} {name}" not in self._made:
            if kind != "group" or name not in GROUPS:
                return False
            self._made[f"{self._region} grant {name}/{policy}"] = name
            self._write()
        what, words = f"Grant {policy} to the stand-in for {name}", json.dumps(document)
        if kind == "group":
            self.ask(what, "iam", "put_group_policy", GroupName=name, PolicyName=policy, PolicyDocument=words)
        else:
            self.ask(what, "iam", "put_role_policy", RoleName=name, PolicyName=policy, PolicyDocument=words)
        return True

    def remove(self, is_kept: Callable[[str, str], bool]) -> None:
        """Removes all stand-ins but those to keep, in reverse order: a resource before the one that contains it."""
        for key in reversed(list(self._made)):
            region, _, rest = key.partition(" ")
            # Kinds may contain spaces: `security group`.
            kind = next(one for one in sorted(_REMOVE, key=len, reverse=True) if rest.startswith(f"{one} "))
            name = rest.removeprefix(f"{kind} ")
            if is_kept(kind, self._made[key]):
                continue
            other = self if region == self._region else StandIns(self._cloud, self._tell, region)
            _REMOVE[kind](other, self._made.pop(key), name)
            self._write()

    def _write(self) -> None:
        draft = self._file.with_name(f"{RECORD}.{os.getpid()}")
        draft.write_text(json.dumps(self._made))
        draft.replace(self._file)

    def client(self, service: str) -> Any:
        return self._session.client(service)

    def ask(self, what: str, service: str, operation: str, **request: Any) -> Any:
        return ask_aws(self._tell, what, partial(getattr(self.client(service), operation), **request))

    def find(self, what: str, service: str, operation: str, **request: Any) -> Any:
        return ask_aws_if_exists(self._tell, what, partial(getattr(self.client(service), operation), **request))

    def tell(self) -> Tell:
        return self._tell

    @property
    def zone(self) -> str:
        return self._zone or f"{self._region}a"

    @property
    def region(self) -> str:
        return self._region


def _stand_in_tags(kind: str, name: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": [{"Key": MARK, "Value": name}, {"Key": "Name", "Value": name}]}]


def widen_vpc(here: StandIns, vpc: str, cidr: str) -> None:
    """Stacks that share a VPC may have their subnets in different parts of it."""
    what = "Widen the stand-in for a VPC"
    there = here.ask(what, "ec2", "describe_vpcs", VpcIds=[vpc])["Vpcs"][0]["CidrBlockAssociationSet"]
    if lies_outside(cidr, [row["CidrBlock"] for row in there]):
        here.ask(what, "ec2", "associate_vpc_cidr_block", VpcId=vpc, CidrBlock=network_around(cidr))


def _make_vpc(here: StandIns, name: str, holds: str = "") -> str:
    """A VPC with an internet gateway, as nodes need it. `holds`: the addresses of a subnet that will be in it."""
    what = f"Make a stand-in for the VPC {name}"
    block = network_around(holds) if holds else _VPC_BLOCK
    vpc = here.ask(what, "ec2", "create_vpc", CidrBlock=block, TagSpecifications=_stand_in_tags("vpc", name))
    identifier = str(vpc["Vpc"]["VpcId"])
    gateway = here.ask(what, "ec2", "create_internet_gateway")["InternetGateway"]["InternetGatewayId"]
    here.ask(what, "ec2", "attach_internet_gateway", InternetGatewayId=gateway, VpcId=identifier)
    mine = [{"Name": "vpc-id", "Values": [identifier]}]
    for table in here.ask(what, "ec2", "describe_route_tables", Filters=mine)["RouteTables"]:
        here.ask(
            what, "ec2", "create_route", RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0",
            GatewayId=gateway,
        )  # fmt: skip
    return identifier


def _remove_vpc(here: StandIns, identifier: str, name: str) -> None:
    what = f"Remove the stand-in for the VPC {name}"
    mine = [{"Name": "attachment.vpc-id", "Values": [identifier]}]
    for gateway in here.ask(what, "ec2", "describe_internet_gateways", Filters=mine)["InternetGateways"]:
        one = gateway["InternetGatewayId"]
        here.find(what, "ec2", "detach_internet_gateway", InternetGatewayId=one, VpcId=identifier)
        here.find(what, "ec2", "delete_internet_gateway", InternetGatewayId=one)
    here.find(what, "ec2", "delete_vpc", VpcId=identifier)


def _make_subnet(here: StandIns, name: str, vpc: str) -> str:
    what = f"Make a stand-in for the subnet {name}"
    mine = [{"Name": "vpc-id", "Values": [vpc]}]
    rows = here.ask(what, "ec2", "describe_subnets", Filters=mine)["Subnets"]
    taken = [ip_network(row["CidrBlock"]) for row in rows]
    whole = ip_network(here.ask(what, "ec2", "describe_vpcs", VpcIds=[vpc])["Vpcs"][0]["CidrBlock"])
    parts = whole.subnets(new_prefix=max(_SUBNET_BITS, whole.prefixlen))
    block = next(str(one) for one in parts if not any(one.overlaps(other) for other in taken))
    made = here.ask(
        what, "ec2", "create_subnet", VpcId=vpc, CidrBlock=block, AvailabilityZone=here.zone,
        TagSpecifications=_stand_in_tags("subnet", name),
    )  # fmt: skip
    return str(made["Subnet"]["SubnetId"])


def _make_security_group(here: StandIns, name: str, vpc: str) -> str:
    """A security group for nodes with EFA: all traffic from and to itself, and HTTPS to AWS's services."""
    what = f"Make a stand-in for the security group {name}"
    made = here.ask(
        what, "ec2", "create_security_group", GroupName=f"stand-in-{name}", Description="stands in", VpcId=vpc,
        TagSpecifications=_stand_in_tags("security-group", name),
    )["GroupId"]  # fmt: skip
    everything = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": made, "Description": "nodes"}]}]
    here.ask(what, "ec2", "authorize_security_group_ingress", GroupId=made, IpPermissions=everything)
    here.ask(what, "ec2", "authorize_security_group_egress", GroupId=made, IpPermissions=everything)
    return str(made)


def _make_route_table(here: StandIns, name: str, vpc: str) -> str:
    what = f"Make a stand-in for the route table {name}"
    made = here.ask(what, "ec2", "create_route_table", VpcId=vpc, TagSpecifications=_stand_in_tags("route-table", name))
    table = str(made["RouteTable"]["RouteTableId"])
    mine = [{"Name": "attachment.vpc-id", "Values": [vpc]}]
    (gateway,) = here.ask(what, "ec2", "describe_internet_gateways", Filters=mine)["InternetGateways"][:1]
    way = gateway["InternetGatewayId"]
    here.ask(what, "ec2", "create_route", RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=way)
    return table


def _make_bucket(here: StandIns, name: str) -> str:
    where = {} if here.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": here.region}}
    here.ask(f"Make a stand-in for the bucket {name}", "s3", "create_bucket", Bucket=name, **where)
    return name


def _remove_bucket(here: StandIns, made: str, name: str) -> None:
    empty_bucket(here.client("s3"), here.tell(), made)
    here.find(f"Remove the stand-in for the bucket {name}", "s3", "delete_bucket", Bucket=made)


def _make_role(here: StandIns, name: str) -> str:
    """The nodes' role, with an instance profile of the same name, as AWS's console makes them."""
    what, service = f"Make a stand-in for the role {name}", "iam"
    here.ask(what, service, "create_role", RoleName=name, AssumeRolePolicyDocument=json.dumps(_NODES))
    here.ask(what, service, "create_instance_profile", InstanceProfileName=name)
    here.ask(what, service, "add_role_to_instance_profile", InstanceProfileName=name, RoleName=name)
    return name


def _remove_role(here: StandIns, made: str, name: str) -> None:
    what, service = f"Remove the stand-in for the role {name}", "iam"
    here.find(what, service, "remove_role_from_instance_profile", InstanceProfileName=made, RoleName=made)
    here.find(what, service, "delete_instance_profile", InstanceProfileName=made)
    for policy in (here.find(what, service, "list_role_policies", RoleName=made) or {}).get("PolicyNames", ()):
        here.find(what, service, "delete_role_policy", RoleName=made, PolicyName=policy)
    here.find(what, service, "delete_role", RoleName=made)


def _remove_group(here: StandIns, made: str, name: str) -> None:
    what = f"Remove the stand-in for the group {name}"
    for policy in (here.find(what, "iam", "list_group_policies", GroupName=made) or {}).get("PolicyNames", ()):
        here.find(what, "iam", "delete_group_policy", GroupName=made, PolicyName=policy)
    here.find(what, "iam", "delete_group", GroupName=made)


def _remove_grant(here: StandIns, made: str, name: str) -> None:
    policy = name.removeprefix(f"{made}/")
    here.find(f"Remove {policy} of {made}", "iam", "delete_group_policy", GroupName=made, PolicyName=policy)


def _stand_in_image(here: StandIns, name: str) -> str:
    from catalog.tables import table

    return str(table("aws_local")["image"][0]["id"])


def _buy_block(here: StandIns, name: str, machine: str) -> str:
    """As many machines as a block may have, for as long as one may last: stacks that share it may change and stay."""
    what = f"Buy a stand-in for the capacity block {name}"
    offerings = here.ask(
        what, "ec2", "describe_capacity_block_offerings", InstanceType=machine, InstanceCount=64,
        CapacityDurationHours=182 * 24,
    )["CapacityBlockOfferings"]  # fmt: skip
    if not offerings:  # no zone of the region has the machines, which `up` says
        return name
    # Where the zone that the file names has none, `up` says in which one the block lies, as on AWS.
    offering = min(offerings, key=lambda one: one["AvailabilityZone"] != here.zone)["CapacityBlockOfferingId"]
    bought = here.ask(
        what, "ec2", "purchase_capacity_block", CapacityBlockOfferingId=offering, InstancePlatform="Linux/UNIX",
        TagSpecifications=_stand_in_tags("capacity-reservation", name),
    )  # fmt: skip
    return str(bought["CapacityReservation"]["CapacityReservationId"])


def _make_parameter(here: StandIns, name: str) -> str:
    image = _stand_in_image(here, name)
    here.ask(f"Make a stand-in for {name}", "ssm", "put_parameter", Name=name, Value=image, Type="String")
    return name


def _find_policy(here: StandIns, arn: str) -> str:
    """AWS's own policies are there under their ARN; others are of the local account."""
    own = f"arn:aws:iam::{ACCOUNT}:policy/{arn.partition(':policy/')[2]}"
    found = (name for name in (arn, own) if here.find(f"Look for {name}", "iam", "get_policy", PolicyArn=name))
    return next(found, "")


def _make_policy(here: StandIns, arn: str) -> str:
    path, _, name = arn.partition(":policy")[2].rpartition("/")
    words = json.dumps({"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}})
    what = f"Make a stand-in for the policy {name}"
    made = here.ask(what, "iam", "create_policy", PolicyName=name, Path=f"{path}/", PolicyDocument=words)
    return str(made["Policy"]["Arn"])


def _made_by(service: str, operation: str, parameter: str, kind: str, **more: Any) -> Callable[[StandIns, str], str]:
    def make(here: StandIns, name: str) -> str:
        here.ask(f"Make a stand-in for the {kind} {name}", service, operation, **{parameter: name}, **more)
        return name

    return make


def _find_by_id(operation: str, key: str, plural: str) -> Callable[[StandIns, str], str]:
    def find(here: StandIns, name: str) -> str:
        answer = here.find(f"Look for {name}", "ec2", operation, Filters=[{"Name": key, "Values": [name]}])
        return name if (answer or {}).get(plural) else ""

    return find


def _find_by_name(
    service: str, operation: str, parameter: str, as_list: bool = False
) -> Callable[[StandIns, str], str]:
    def find(here: StandIns, name: str) -> str:
        wanted: Any = [name] if as_list else name
        return name if here.find(f"Look for {name}", service, operation, **{parameter: wanted}) else ""

    return find


def _find_log_group(here: StandIns, name: str) -> str:
    answer = here.ask(f"Look for {name}", "logs", "describe_log_groups", logGroupNamePrefix=name)
    return name if any(row["logGroupName"] == name for row in answer["logGroups"]) else ""


def _gone_by(service: str, operation: str, parameter: str, **more: Any) -> Callable[[StandIns, str, str], None]:
    def remove(here: StandIns, made: str, name: str) -> None:
        here.find(f"Remove the stand-in for {name}", service, operation, **{parameter: made}, **more)

    return remove


_THERE: Mapping[str, Callable[[StandIns, str], str]] = {
    "vpc": _find_by_id("describe_vpcs", "vpc-id", "Vpcs"),
    "subnet": _find_by_id("describe_subnets", "subnet-id", "Subnets"),
    "security group": _find_by_id("describe_security_groups", "group-id", "SecurityGroups"),
    "route table": _find_by_id("describe_route_tables", "route-table-id", "RouteTables"),
    "bucket": _find_by_name("s3", "head_bucket", "Bucket"),
    "role": _find_by_name("iam", "get_role", "RoleName"),
    "repository": _find_by_name("ecr", "describe_repositories", "repositoryNames", as_list=True),
    "log group": _find_log_group,
    "group": _find_by_name("iam", "get_group", "GroupName"),
    "user role": _find_by_name("iam", "get_role", "RoleName"),
    "placement group": _find_by_name("ec2", "describe_placement_groups", "GroupNames", as_list=True),
    "parameter": _find_by_name("ssm", "get_parameter", "Name"),
    "policy": _find_policy,
    "image": _find_by_id("describe_images", "image-id", "Images"),
    "capacity block": _find_by_name("ec2", "describe_capacity_reservations", "CapacityReservationIds", as_list=True),
}  # fmt: skip
_MAKE: Mapping[str, Callable[..., str]] = {
    "vpc": _make_vpc,
    "subnet": _make_subnet,
    "security group": _make_security_group,
    "route table": _make_route_table,
    "bucket": _make_bucket,
    "role": _make_role,
    "user role": _make_role,
    "parameter": _make_parameter,
    "policy": _make_policy,
    "image": _stand_in_image,
    "capacity block": _buy_block,
    "repository": _made_by("ecr", "create_repository", "repositoryName", "repository"),
    "log group": _made_by("logs", "create_log_group", "logGroupName", "log group"),
    "group": _made_by("iam", "create_group", "GroupName", "group"),
    "placement group": _made_by("ec2", "create_placement_group", "GroupName", "placement group", Strategy="cluster"),
}  # fmt: skip
_REMOVE: Mapping[str, Callable[[StandIns, str, str], None]] = {
    "vpc": _remove_vpc,
    "subnet": _gone_by("ec2", "delete_subnet", "SubnetId"),
    "security group": _gone_by("ec2", "delete_security_group", "GroupId"),
    "route table": _gone_by("ec2", "delete_route_table", "RouteTableId"),
    "bucket": _remove_bucket,
    "role": _remove_role,
    "repository": _gone_by("ecr", "delete_repository", "repositoryName", force=True),
    "log group": _gone_by("logs", "delete_log_group", "logGroupName"),
    "group": _remove_group,
    "user role": _remove_role,
    "grant": _remove_grant,
    "placement group": _gone_by("ec2", "delete_placement_group", "GroupName"),
    "parameter": _gone_by("ssm", "delete_parameter", "Name"),
    "policy": _gone_by("iam", "delete_policy", "PolicyArn"),
    "image": lambda here, made, name: None,
    "capacity block": lambda here, made, name: None,  # nobody can end one
}  # fmt: skip
