# SPDX-License-Identifier: Apache-2.0
"""What the security groups of a snapshot allow, for which machines, and where routes lead.

A group is described by its machines. So if rules move from one group to another with the same machines, nothing
changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
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


def read_aws_network(side: Snapshot) -> Network:
    rules = side.of(INGRESS_RULE, EGRESS_RULE, GROUP_RULE)
    if not side.of(SECURITY_GROUP) and not rules:
        if side.plan.get("uses") and "network" in (side.plan.get("taken") or ()):
            owner = f"that of the stack {side.plan['uses']}, whose review has its rules"
            return Network(unjudged=f"the security group is {owner}")
        group = (side.plan.get("network") or {}).get("securityGroup")
        return Network(unjudged=f"the security group {group} is not the stack's: its rules are not in the stack file")
    groups = _read_groups(side)
    passages = [passage for one in (*rules, *side.of(SECURITY_GROUP)) for passage in _passages_of_rules(one, groups)]
    subnet = next((one for one in side.of(SUBNET) if one.name == "subnet"), None)
    blocks = [str(subnet.inputs["cidrBlock"])] if subnet and subnet.inputs.get("cidrBlock") else []
    inside = [str(one.inputs["cidrBlock"]) for one in side.of(VPC, SUBNET) if one.inputs.get("cidrBlock")]
    own = {*(groups.where(one.id) for one in side.of(SECURITY_GROUP)), *groups.lists.values()}
    interfaces = (
        interface
        for machine in side.of(TEMPLATE, INSTANCE)
        for interface in (machine.inputs, *_as_list(machine.inputs.get("networkInterfaces")))
        if isinstance(interface, Mapping)
    )
    is_public = (
        any(str(interface.get("associatePublicIpAddress")).lower() == "true" for interface in interfaces)
        or (subnet is not None and subnet.inputs.get("mapPublicIpOnLaunch") is True)
        or bool(side.of(ADDRESS))
    )
    # The peers through which the platform's services are reached. Without them, a route leads to the services.
    services = [name for name in groups.lists.values() if name.startswith("S3")]
    if any(ENDPOINTS in members for members in groups.members.values()):
        services.append(ENDPOINTS)
    return Network(
        passages=tuple(dict.fromkeys(passages)),
        inside=tuple(dict.fromkeys((*inside, *sorted(own)))),
        public=(NODES,) if is_public else (),
        ways=tuple(dict.fromkeys(_route_ways(side))),
        nodes=NODES if any(NODES in one for one in groups.members.values()) else "",
        addresses=(NODES, *blocks),
        services=tuple((name, ANYWHERE) for name in services) or ((ANYWHERE,),),
    )


def _read_groups(side: Snapshot) -> _Groups:
    members: dict[str, set[str]] = defaultdict(set)
    templates: dict[str, set[str]] = {}
    for machine in side.of(TEMPLATE, INSTANCE):
        interfaces = [one for one in _as_list(machine.inputs.get("networkInterfaces")) if isinstance(one, Mapping)]
        named = (machine.inputs.get("vpcSecurityGroupIds"), *(one.get("securityGroups") for one in interfaces))
        if groups := {group for groups in named for group in _as_list(groups)}:
            templates[machine.name] = groups
    for name, groups in templates.items():
        for group in groups:
            whole = all(group in other for other in templates.values())
            members[group].add(NODES if whole else f"the nodes of {name.partition('/')[0]}")
    lists = {}
    for endpoint in side.of(ENDPOINT):
        service = str(endpoint.inputs.get("serviceName", endpoint.name)).rpartition(".")[2].upper()
        lists[f"pl-{endpoint.name}"] = f"{service}, by its endpoint"
        for group in _as_list(endpoint.inputs.get("securityGroupIds")):
            members[group].add(ENDPOINTS)
    names = {
        one.id: f"the security group `{one.inputs.get('name') or one.name}`"
        for one in side.of(SECURITY_GROUP)
        if one.id
    }
    return _Groups({group: tuple(sorted(found)) for group, found in members.items()}, names, lists)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value] if value else []


def _passages_of_rules(resource: ReviewedResource, groups: _Groups) -> Iterator[Passage]:
    """What the rules in a resource's inputs allow: of a group, or of a rule that is a resource itself."""
    group = (
        resource.id
        if resource.type == SECURITY_GROUP
        else str(resource.inputs.get("securityGroupId") or f"{UNKNOWN} group")
    )
    for rule in security_rules_of(resource.type, resource.inputs):
        for peer in _peers_of_rule(groups, group, rule):
            for where in groups.members.get(group) or (groups.where(group),):
                yield passage_of(where, rule, peer)


def _peers_of_rule(groups: _Groups, group: str, rule: SecurityRule) -> Iterable[str]:
    """The peers of a rule. For a group, these are its machines, each kind separately."""
    peer = str(rule.peer)
    if rule.peer_kind == "prefix list":
        return (groups.lists.get(peer, f"the prefix list {peer}"),)
    if rule.peer_kind == "group":
        return groups.members.get(peer or group) or (groups.where(peer or group),)
    return (peer,)


def _route_ways(side: Snapshot) -> Iterator[str]:
    routes = [(str(route.inputs.get("routeTableId")), route.inputs) for route in side.of(ROUTE)]
    for table in side.of(ROUTES):
        routes += [(table.id, route) for route in _as_list(table.inputs.get("routes")) if isinstance(route, Mapping)]
    names = {subnet.id: subnet.name for subnet in side.of(SUBNET)}
    targets = (
        "destinationCidrBlock",
        "destinationIpv6CidrBlock",
        "destinationPrefixListId",
        "cidrBlock",
        "ipv6CidrBlock",
    )
    for table_id, route in routes:
        peer = next((str(route[key]) for key in targets if route.get(key)), UNKNOWN)
        gateway = next((words for key, words in _GATEWAYS.items() if route.get(key)), "a gateway that is not known")
        subnets = [
            names.get(str(one.inputs.get("subnetId")), str(one.inputs.get("subnetId")))
            for one in side.of(ASSOCIATION)
            if str(one.inputs.get("routeTableId")) == table_id
        ]
        for subnet in subnets or [f"with the route table {table_id}"]:
            yield f"the subnet `{subnet}`: to {peer} through {gateway}"
