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

from components.platform.review import UNKNOWN, Network, Passage, ReviewedResource, Snapshot, passage_of
from components.values.projections import gives_public_address, security_rules_of
from components.values.security_rules import SecurityRule

NODES, ENDPOINTS = "the nodes", "the endpoints of services"
ANYWHERE = "0.0.0.0/0"
# Of a route, or of one in a table's own list.
_TARGETS = ("destinationCidrBlock", "destinationIpv6CidrBlock", "destinationPrefixListId", "cidrBlock", "ipv6CidrBlock")
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
    rules, own_groups = side.of_part("security rule"), side.of_part("security group")
    if not own_groups and not rules:
        if side.plan.get("uses") and "network" in (side.plan.get("taken") or ()):
            owner = f"that of the stack {side.plan['uses']}, whose review has its rules"
            return Network(unjudged=f"the security group is {owner}")
        named = side.plan.get("network") or {}
        in_subnet = f" in the subnet {named['subnet']}" if named.get("subnet") else ""
        where = f"the security group {named.get('securityGroup')}{in_subnet}"
        return Network(unjudged=f"{where} is not the stack's: its rules are not in the stack file")
    groups = _read_groups(side)
    rules_of_groups = [
        *((str(rule.inputs.get("securityGroupId") or f"{UNKNOWN} group"), rule) for rule in rules),
        *((group.id, group) for group in own_groups),
    ]
    passages = [
        passage for group_id, resource in rules_of_groups for passage in _passages_of_rules(group_id, resource, groups)
    ]
    subnet = next((one for one in side.of_part("subnet") if one.name == "subnet"), None)
    blocks = [str(subnet.inputs["cidrBlock"])] if subnet and subnet.inputs.get("cidrBlock") else []
    inside = [str(one.inputs["cidrBlock"]) for one in side.of_part("network", "subnet") if one.inputs.get("cidrBlock")]
    own = {*(groups.where(group.id) for group in own_groups), *groups.lists.values()}
    placed = (*side.of_part("template", "machine"), *([subnet] if subnet else []))
    is_public = bool(side.of_part("address association")) or any(
        gives_public_address(resource.type, resource.inputs) for resource in placed
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
    for machine in side.of_part("template", "machine"):
        interfaces = [one for one in _as_list(machine.inputs.get("networkInterfaces")) if isinstance(one, Mapping)]
        named = (machine.inputs.get("vpcSecurityGroupIds"), *(one.get("securityGroups") for one in interfaces))
        if groups := {group for groups in named for group in _as_list(groups)}:
            templates[machine.name] = groups
    for name, groups in templates.items():
        for group in groups:
            whole = all(group in other for other in templates.values())
            members[group].add(NODES if whole else f"the nodes of {name.partition('/')[0]}")
    lists = {}
    for endpoint in side.of_part("endpoint"):
        service = str(endpoint.inputs.get("serviceName", endpoint.name)).rpartition(".")[2].upper()
        lists[f"pl-{endpoint.name}"] = f"{service}, by its endpoint"
        for group in _as_list(endpoint.inputs.get("securityGroupIds")):
            members[group].add(ENDPOINTS)
    names = {
        one.id: f"the security group `{one.inputs.get('name') or one.name}`"
        for one in side.of_part("security group")
        if one.id
    }
    return _Groups({group: tuple(sorted(found)) for group, found in members.items()}, names, lists)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value] if value else []


def _passages_of_rules(group: str, resource: ReviewedResource, groups: _Groups) -> Iterator[Passage]:
    """What the rules in a resource's inputs allow: of the group, or of a rule that is a resource itself."""
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
    routes = [(str(route.inputs.get("routeTableId")), route.inputs) for route in side.of_part("route")]
    for table in side.of_part("route table"):
        routes += [(table.id, route) for route in _as_list(table.inputs.get("routes")) if isinstance(route, Mapping)]
    names = {subnet.id: subnet.name for subnet in side.of_part("subnet")}
    own_tables = {table.id for table in side.of_part("route table")}
    associated = [
        (str(one.inputs.get("routeTableId")), names.get(subnet := str(one.inputs.get("subnetId")), subnet))
        for one in side.of_part("route table association")
    ]
    for table_id, subnet in associated:
        if table_id not in own_tables:
            yield f"the subnet `{subnet}`: through the route table {table_id}, whose routes are not the stack's"
    for table_id, route in routes:
        peer = next((str(route[key]) for key in _TARGETS if route.get(key)), UNKNOWN)
        gateway = next((words for key, words in _GATEWAYS.items() if route.get(key)), "a gateway that is not known")
        subnets = [subnet for its_table, subnet in associated if its_table == table_id]
        for subnet in subnets or [f"with the route table {table_id}"]:
            yield f"the subnet `{subnet}`: to {peer} through {gateway}"
