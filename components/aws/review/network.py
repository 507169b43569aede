# SPDX-License-Identifier: Apache-2.0
"""What the security groups of a snapshot allow, for which machines, and where routes lead.

A group is described by its machines. So if rules move from one group to another with the same machines, nothing
changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.aws.types.security_rules import EGRESS_RULE, GROUP_RULE, INGRESS_RULE, SECURITY_GROUP
from components.platform.review import UNKNOWN, Network, Passage, ReviewedResource, Snapshot, passage_of
from components.values.projections import security_rules_of
from components.values.security_rules import SecurityRule

TEMPLATE, INSTANCE = "aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/instance:Instance"
ENDPOINT, SUBNET, VPC = "aws:ec2/vpcEndpoint:VpcEndpoint", "aws:ec2/subnet:Subnet", "aws:ec2/vpc:Vpc"
ROUTE, ROUTES = "aws:ec2/route:Route", "aws:ec2/routeTable:RouteTable"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
ADDRESS = "aws:ec2/eipAssociation:EipAssociation"
NODES, ENDPOINTS = "the nodes", "the endpoints of services"
ANYWHERE = "0.0.0.0/0"
_GATEWAYS = {
    "gatewayId": "an internet gateway",
    "natGatewayId": "a NAT gateway",
    "transitGatewayId": "a transit gateway",
    "vpcPeeringConnectionId": "a peering connection",
    "networkInterfaceId": "a network interface",
    "vpcEndpointId": "an endpoint",
    "egressOnlyGatewayId": "an egress-only gateway",
}


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
    rules = side.of(INGRESS_RULE, EGRESS_RULE, GROUP_RULE)
    if not side.of(SECURITY_GROUP) and not rules:
        return Network(unjudged=_not_known(side))
    groups = _groups(side)
    passages = [passage for one in (*rules, *side.of(SECURITY_GROUP)) for passage in _passages(one, groups)]
    subnet = next((one for one in side.of(SUBNET) if one.name == "subnet"), None)
    blocks = [str(subnet.inputs["cidrBlock"])] if subnet and subnet.inputs.get("cidrBlock") else []
    inside = [str(one.inputs["cidrBlock"]) for one in side.of(VPC, SUBNET) if one.inputs.get("cidrBlock")]
    own = {*(groups.where(one.id) for one in side.of(SECURITY_GROUP)), *groups.lists.values()}
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
    names = {
        one.id: f"the security group `{one.inputs.get('name') or one.name}`"
        for one in side.of(SECURITY_GROUP)
        if one.id
    }
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


def _passages(resource: ReviewedResource, groups: _Groups) -> Iterator[Passage]:
    """What the rules in a resource's inputs allow: of a group, or of a rule that is a resource itself."""
    group = (
        resource.id
        if resource.type == SECURITY_GROUP
        else str(resource.inputs.get("securityGroupId") or f"{UNKNOWN} group")
    )
    for rule in security_rules_of(resource.type, resource.inputs):
        for peer in _peers(groups, group, rule):
            for where in groups.members.get(group) or (groups.where(group),):
                yield passage_of(where, rule, peer)


def _peers(groups: _Groups, group: str, rule: SecurityRule) -> Iterable[str]:
    """The peers of a rule. For a group, these are its machines, each kind separately."""
    peer = str(rule.peer)
    if rule.peer_kind == "prefix list":
        return (groups.lists.get(peer, f"the prefix list {peer}"),)
    if rule.peer_kind == "group":
        return groups.members.get(peer or group) or (groups.where(peer or group),)
    return (peer,)


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
