# SPDX-License-Identifier: Apache-2.0
"""What the security groups of a snapshot allow, for which machines, and where routes lead.

A group is described by its machines. So if rules move from one group to another with the same machines, nothing
changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from components.platform.review import EVERY_PORT, UNKNOWN, Network, Passage, ReviewedResource, Snapshot
from components.values.protocols import EVERY_PROTOCOL, PROTOCOL_NAMES, protocol_name

GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
TEMPLATE, INSTANCE = "aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/instance:Instance"
ENDPOINT, SUBNET, VPC = "aws:ec2/vpcEndpoint:VpcEndpoint", "aws:ec2/subnet:Subnet", "aws:ec2/vpc:Vpc"
ROUTE, ROUTES = "aws:ec2/route:Route", "aws:ec2/routeTable:RouteTable"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
ADDRESS = "aws:ec2/eipAssociation:EipAssociation"
NODES, ENDPOINTS = "the nodes", "the endpoints of services"
ANYWHERE = "0.0.0.0/0"
_CODES = 256
_GATEWAYS = {
    "gatewayId": "an internet gateway",
    "natGatewayId": "a NAT gateway",
    "transitGatewayId": "a transit gateway",
    "vpcPeeringConnectionId": "a peering connection",
    "networkInterfaceId": "a network interface",
    "vpcEndpointId": "an endpoint",
    "egressOnlyGatewayId": "an egress-only gateway",
}

Direction = Literal["ingress", "egress"]


@dataclass(frozen=True)
class _Groups:
    """`members`: the machines of each group, by its id. `names`: the names of groups without machines in this stack."""

    members: Mapping[str, tuple[str, ...]]
    names: Mapping[str, str]
    lists: Mapping[str, str]

    def where(self, group: str) -> str:
        """The machines of a group in words: the same text for all groups with the same machines."""
        if group in self.members:
            return " and ".join(self.members[group])
        return self.names.get(group, f"the security group {group}")


def network_of(side: Snapshot) -> Network:
    rules = side.of(INGRESS, EGRESS, RULE)
    if not side.of(GROUP) and not rules:
        return Network(unjudged=_not_known(side))
    groups = _groups(side)
    passages = [passage for one in rules for passage in _of_rule(one, groups)]
    passages += [passage for one in side.of(GROUP) for passage in _of_group(one, groups)]
    subnet = next((one for one in side.of(SUBNET) if one.name == "subnet"), None)
    blocks = [str(subnet.inputs["cidrBlock"])] if subnet and subnet.inputs.get("cidrBlock") else []
    inside = [str(one.inputs["cidrBlock"]) for one in side.of(VPC, SUBNET) if one.inputs.get("cidrBlock")]
    own = {*(groups.where(one.id) for one in side.of(GROUP)), *groups.lists.values()}
    return Network(
        passages=tuple(dict.fromkeys(passages)),
        inside=tuple(dict.fromkeys((*inside, *sorted(own)))),
        public=_public(side),
        ways=tuple(dict.fromkeys(_ways(side))),
        nodes=NODES if any(NODES in one for one in groups.members.values()) else "",
        addresses=(NODES, *blocks),
        services=tuple((name, ANYWHERE) for name in _service_names(side, groups)) or ((ANYWHERE,),),
    )


def _not_known(side: Snapshot) -> str:
    network: Mapping[str, Any] = side.plan.get("network") or {}
    if side.plan.get("uses") and "network" in (side.plan.get("taken") or ()):
        return f"the security group is that of the stack {side.plan['uses']}, whose review has its rules"
    return f"the security group {network.get('securityGroup')} is not the stack's: its rules are not in the stack file"


def _groups(side: Snapshot) -> _Groups:
    members: dict[str, set[str]] = defaultdict(set)
    templates = {one.name: set(_of_machine(one)) for one in side.of(TEMPLATE, INSTANCE)}
    templates = {name: groups for name, groups in templates.items() if groups}
    for name, groups in templates.items():
        for group in groups:
            whole = all(group in other for other in templates.values())
            members[group].add(NODES if whole else f"the nodes of {name.partition('/')[0]}")
    for endpoint in side.of(ENDPOINT):
        for group in _list(endpoint.inputs.get("securityGroupIds")):
            members[group].add(ENDPOINTS)
    names = {one.id: f"the security group `{one.inputs.get('name') or one.name}`" for one in side.of(GROUP) if one.id}
    lists = {f"pl-{one.name}": f"{_service(one)}, by its endpoint" for one in side.of(ENDPOINT)}
    return _Groups({group: tuple(sorted(found)) for group, found in members.items()}, names, lists)


def _service(endpoint: ReviewedResource) -> str:
    return str(endpoint.inputs.get("serviceName", endpoint.name)).rpartition(".")[2].upper()


def _of_machine(machine: ReviewedResource) -> Iterator[str]:
    inputs = machine.inputs
    yield from _list(inputs.get("vpcSecurityGroupIds"))
    for interface in _list(inputs.get("networkInterfaces")):
        if isinstance(interface, Mapping):
            yield from _list(interface.get("securityGroups"))


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value] if value else []


def _of_rule(rule: ReviewedResource, groups: _Groups) -> Iterator[Passage]:
    inputs = rule.inputs
    group = str(inputs.get("securityGroupId") or f"{UNKNOWN} group")
    if rule.type == RULE:
        yield from _passages(groups, group, "egress" if inputs.get("type") == "egress" else "ingress", inputs)
        return
    row = {
        "protocol": inputs.get("ipProtocol"),
        "fromPort": inputs.get("fromPort"),
        "toPort": inputs.get("toPort"),
        "cidrBlocks": inputs.get("cidrIpv4"),
        "ipv6CidrBlocks": inputs.get("cidrIpv6"),
        "prefixListIds": inputs.get("prefixListId"),
        "securityGroups": inputs.get("referencedSecurityGroupId"),
    }
    yield from _passages(groups, group, "ingress" if rule.type == INGRESS else "egress", row)


def _of_group(group: ReviewedResource, groups: _Groups) -> Iterator[Passage]:
    """The rules in the group's own inputs."""
    for direction in ("ingress", "egress"):
        for row in _list(group.inputs.get(direction)):
            if isinstance(row, Mapping):
                yield from _passages(groups, group.id, direction, row)
            else:
                yield Passage(groups.where(group.id), direction, "all", str(row))


def _passages(groups: _Groups, group: str, direction: Direction, row: Mapping[str, Any]) -> Iterator[Passage]:
    protocol = protocol_name(str(row.get("protocol") or EVERY_PROTOCOL))
    ports = _ports(protocol, row.get("fromPort"), row.get("toPort"))
    for peer in _peers(groups, group, row):
        for where in groups.members.get(group) or (groups.where(group),):
            yield Passage(where, direction, protocol, peer, ports)


def _peers(groups: _Groups, group: str, row: Mapping[str, Any]) -> Iterator[str]:
    """The peers of a rule. For a group, these are its machines, each kind separately."""
    yield from map(str, (*_list(row.get("cidrBlocks")), *_list(row.get("ipv6CidrBlocks"))))
    yield from (groups.lists.get(one, f"the prefix list {one}") for one in _list(row.get("prefixListIds")))
    named = [*_list(row.get("securityGroups")), *_list(row.get("sourceSecurityGroupId"))]
    for one in [*named, *([group] if row.get("self") is True else [])]:
        yield from groups.members.get(one) or (groups.where(one),)


def _ports(protocol: str, first: Any, last: Any) -> tuple[int, int]:
    """The ports of a rule. Unknown ones count as all ports."""
    if protocol not in PROTOCOL_NAMES:
        return EVERY_PORT
    try:
        start, end = int(first), int(last)
    except (TypeError, ValueError):
        return EVERY_PORT
    if not protocol.startswith("icmp"):
        return EVERY_PORT if (start, end) == (-1, -1) else (start, end)
    if start < 0:
        return EVERY_PORT
    return (start * _CODES, start * _CODES + _CODES - 1) if end < 0 else (start * _CODES + end, start * _CODES + end)


def _service_names(side: Snapshot, groups: _Groups) -> list[str]:
    """The peers through which the platform's services are reached. None if a route leads to them."""
    lists = [name for name in groups.lists.values() if name.startswith("S3")]
    has_endpoints = any(ENDPOINTS in members for members in groups.members.values())
    return [*lists, *([ENDPOINTS] if has_endpoints else [])]


def _public(side: Snapshot) -> tuple[str, ...]:
    interfaces = (
        interface
        for one in side.of(TEMPLATE, INSTANCE)
        for interface in (one.inputs, *_list(one.inputs.get("networkInterfaces")))
        if isinstance(interface, Mapping)
    )
    chosen = any(str(one.get("associatePublicIpAddress")).lower() == "true" for one in interfaces)
    by_subnet = any(one.inputs.get("mapPublicIpOnLaunch") is True and one.name == "subnet" for one in side.of(SUBNET))
    return (NODES,) if chosen or by_subnet or side.of(ADDRESS) else ()


def _ways(side: Snapshot) -> Iterator[str]:
    for table, row in _routes(side):
        peers = (
            "destinationCidrBlock",
            "destinationIpv6CidrBlock",
            "destinationPrefixListId",
            "cidrBlock",
            "ipv6CidrBlock",
        )
        peer = next((str(row[key]) for key in peers if row.get(key)), UNKNOWN)
        gateway = next((words for key, words in _GATEWAYS.items() if row.get(key)), "a gateway that is not known")
        for subnet in _subnets_of(table, side):
            yield f"the subnet `{subnet}`: to {peer} through {gateway}"


def _routes(side: Snapshot) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for one in side.of(ROUTE):
        yield str(one.inputs.get("routeTableId")), one.inputs
    for one in side.of(ROUTES):
        yield from ((one.id, row) for row in _list(one.inputs.get("routes")) if isinstance(row, Mapping))


def _subnets_of(table: str, side: Snapshot) -> Sequence[str]:
    names = {one.id: one.name for one in side.of(SUBNET)}
    found = [
        names.get(str(one.inputs.get("subnetId")), str(one.inputs.get("subnetId")))
        for one in side.of(ASSOCIATION)
        if str(one.inputs.get("routeTableId")) == table
    ]
    return found or [f"with the route table {table}"]
