# SPDX-License-Identifier: Apache-2.0
"""What the security lists and groups of a snapshot allow, for which subnets, and where routes lead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from catalog.tables import table
from components.oci.types.security_rules import read_rules_of_list
from components.platform.review import UNKNOWN, Network, Passage, ReviewedResource, Snapshot, passage_of
from components.values.projections import prohibits_public_addresses, security_rules_of
from components.values.security_rules import SecurityRule

# Kinds of gateways in words, by the kind in their OCIDs or resource types.
_GATEWAYS = {
    "internetgateway": "an internet gateway",
    "natgateway": "a NAT gateway",
    "servicegateway": "a service gateway",
    "drg": "a dynamic routing gateway",
    "localpeeringgateway": "a local peering gateway",
}
SERVICES = "the region's services"
ANYWHERE = "0.0.0.0/0"


def network_of_side(side: Snapshot) -> Network:
    subnets = side.of_part("subnet")
    if not subnets:
        if side.plan.get("uses") and "network" in (side.plan.get("taken") or ()):
            of_stack = f"the subnet is that of the stack {side.plan['uses']}, whose review has its rules"
            return Network(unjudged=of_stack)
        named = (side.plan.get("network") or {}).get("subnet")
        subnet_text = f"the subnet {named}" if named else "the subnet"
        return Network(unjudged=f"{subnet_text} is not the stack's: its rules are not in the stack file")
    nodes = next((subnet for subnet in subnets if subnet.name == "subnet"), subnets[0])
    # Their names in the program stay when the stack is renamed. The nodes' subnet needs no name.
    names = {one.urn: "the subnet" if one.urn == nodes.urn else f"the subnet `{one.name}`" for one in subnets}
    passages: list[Passage] = []
    ways: list[str] = []
    for subnet in subnets:
        for rules in _lists_of(subnet, side):
            for rule in security_rules_of(rules.type, rules.inputs) if rules else _default_rules(side):
                passages.append(passage_of(names[subnet.urn], rule, _peer_of_rule(rule, side)))
        routes = _routes_of(subnet, side)
        if routes is None:
            table_id = subnet.inputs.get("routeTableId") or "of the VCN"
            ways.append(f"{names[subnet.urn]}: through the route table {table_id}, whose routes are not the stack's")
        for route in routes or ():
            to, gateway = route.get("destination") or route.get("cidrBlock"), _gateway_of_route(route, side)
            if route.get("destinationType") == "SERVICE_CIDR_BLOCK":
                to, gateway = SERVICES, _GATEWAYS["servicegateway"]
            ways.append(f"{names[subnet.urn]}: to {to} through {gateway}")
    groups = {group.id: _group_name(group) for group in side.of_part("security group") if group.id}
    for resource in side.of_part("security rule"):
        group_id = str(resource.inputs.get("networkSecurityGroupId"))
        for rule in security_rules_of(resource.type, resource.inputs):
            group_name = groups.get(group_id, f"the security group {group_id}")
            passages.append(passage_of(group_name, rule, _peer_of_rule(rule, side)))
    blocks = [block for resource in (*side.of_part("network"), *subnets) for block in _cidr_blocks(resource)]
    return Network(
        passages=tuple(dict.fromkeys(passages)),
        inside=tuple(dict.fromkeys((*blocks, SERVICES))),
        public=tuple(names[subnet.urn] for subnet in subnets if _is_public(subnet, side)),
        ways=tuple(dict.fromkeys(ways)),
        nodes=names[nodes.urn],
        addresses=_cidr_blocks(nodes),
        services=((SERVICES, ANYWHERE),),
    )


def _cidr_blocks(resource: ReviewedResource) -> tuple[str, ...]:
    found: list[str] = []
    for key in (
        "cidrBlock",
        "cidrBlocks",
        "ipv4cidrBlocks",
        "ipv6cidrBlock",
        "ipv6cidrBlocks",
        "ipv6privateCidrBlocks",
    ):
        value = resource.inputs.get(key)
        found += [str(one) for one in (value if isinstance(value, list) else [value]) if one]
    return tuple(dict.fromkeys(found))


def _lists_of(subnet: ReviewedResource, side: Snapshot) -> Iterator[ReviewedResource | None]:
    """The security lists of a subnet. None means the default list of the VCN."""
    named = subnet.inputs.get("securityListIds")
    lists, defaults = side.of_part("security list"), side.of_part("default security list")
    if not named:
        yield from defaults or (None,)
        return
    by_id = {one.id: one for one in lists if one.id}
    for text in named if isinstance(named, list) else [named]:
        if text in by_id:
            yield by_id[text]
        elif _is_unknown(text):
            # The list is not known, so all lists of the stack are assumed.
            yield from lists
        else:
            yield from (one for one in defaults if one.inputs.get("manageDefaultResourceId") == text)


def _is_unknown(value: Any) -> bool:
    return not isinstance(value, str) or value.startswith(UNKNOWN)


def _default_rules(side: Snapshot) -> Iterator[SecurityRule]:
    """Those of the default list that a VCN has if the stack does not declare it."""
    rows: Mapping[str, Any] = table("oci_review")["default_security_list"]
    own = [block for vcn in side.of_part("network") for block in _cidr_blocks(vcn)] or [f"{UNKNOWN} range of the VCN"]
    ingress = [
        {**row, "source": one}
        for row in rows["ingress"]
        for one in (own if row["source"] == "vcn" else [row["source"]])
    ]
    return read_rules_of_list({"ingressSecurityRules": ingress, "egressSecurityRules": rows["egress"]})


def _group_name(group: ReviewedResource) -> str:
    return f"the security group `{group.inputs.get('displayName') or group.name}`"


def _peer_of_rule(rule: SecurityRule, side: Snapshot) -> str:
    peer = UNKNOWN if rule.peer is None else str(rule.peer)
    if rule.peer_kind == "services":
        # Their name differs from region to region.
        return SERVICES if peer.startswith(("all-", "all ", UNKNOWN)) else peer
    if rule.peer_kind == "group":
        named = {one.id: _group_name(one) for one in side.of_part("security group") if one.id}
        return named.get(peer, f"the security group {peer}")
    return peer


def _is_public(subnet: ReviewedResource, side: Snapshot) -> bool:
    """Whether nodes in the subnet may have public addresses with a route to the internet."""
    if prohibits_public_addresses(subnet.type, subnet.inputs):
        return False
    routes = _routes_of(subnet, side)
    return routes is None or any(_gateway_of_route(row, side) == _GATEWAYS["internetgateway"] for row in routes)


def _routes_of(subnet: ReviewedResource, side: Snapshot) -> Sequence[Mapping[str, Any]] | None:
    """The routes of a subnet. None: its table is not the stack's."""
    named, tables = subnet.inputs.get("routeTableId"), side.of_part("route table")
    if not named:
        tables = side.of_part("default route table")
        return _route_rules(tables) if tables or side.of_part("network") else None
    if _is_unknown(named):
        return _route_rules(tables) if tables else None
    found = [
        one
        for one in (*tables, *side.of_part("default route table"))
        if named in (one.id, one.inputs.get("manageDefaultResourceId"))
    ]
    return _route_rules(found) if found else None


def _route_rules(tables: Iterable[ReviewedResource]) -> list[Mapping[str, Any]]:
    return [row for one in tables for row in one.inputs.get("routeRules") or () if isinstance(row, Mapping)]


def _gateway_of_route(row: Mapping[str, Any], side: Snapshot) -> str:
    named = str(row.get("networkEntityId", UNKNOWN))
    made = next((one for one in side.resources if one.id and one.id == named), None)
    if made is None and _is_unknown(named):
        # A preview does not know ids of new resources. If there is only one gateway, it must be that one.
        new = [one for one in side.resources if not one.id and one.type.rpartition(":")[2].lower() in _GATEWAYS]
        made = new[0] if len(new) == 1 else None
    kind = made.type.rpartition(":")[2].lower() if made else (named.split(".")[1:2] or [""])[0]
    return _GATEWAYS.get(kind, "a gateway that is not known")
