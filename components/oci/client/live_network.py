# SPDX-License-Identifier: Apache-2.0
"""Reads the subnet of a stack, its rules and its routes, as resources that a review can judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from components.oci.client.live import SECURITY_LIST, SUBNET
from components.oci.client.live_values import as_program_inputs, as_rule
from components.oci.client.tenancy_reader import TenancyReader
from components.oci.plan import OciPlan
from components.oci.rules import ANYWHERE
from components.plan.model import INTERNET
from components.plan.show import to_plain_values
from components.platform.prerequisites import Answer, LiveNetwork, Problem
from components.platform.review import ReviewedResource, Snapshot

VCN, ROUTE_TABLE = "oci:Core/vcn:Vcn", "oci:Core/routeTable:RouteTable"
_SERVICES = "SERVICE_CIDR_BLOCK"
# Gateways that can be told to drop everything, by the kind in their OCIDs.
_GATEWAYS = {"natgateway": "get_nat_gateway", "servicegateway": "get_service_gateway"}


def check_subnet(reader: TenancyReader, plan: OciPlan, subnet: Any) -> Iterator[Answer]:
    """`subnet`: as the SDK has it."""
    name = f"the subnet {subnet.display_name}"
    vcn = reader.read(f"Read the VCN of {name}", "core", "get_vcn", subnet.vcn_id)
    routes = reader.read(f"Read the routes of {name}", "core", "get_route_table", subnet.route_table_id)
    resources = [
        _live_resource(VCN, "vcn", vcn),
        _live_resource(SUBNET, "subnet", subnet),
        _live_resource(ROUTE_TABLE, "routes", routes),
    ]
    for ocid in subnet.security_list_ids or ():
        rules = reader.read(f"Read a security list of {name}", "core", "get_security_list", ocid)
        resources.append(_live_resource(SECURITY_LIST, rules.display_name, rules))
    if not subnet.prohibit_public_ip_on_vnic:
        remedy = "Name a subnet that prohibits public addresses: they are chosen when a subnet is made"
        yield Problem(f"{name} is public, and nodes train in a private one", remedy)
    yield from _check_routes(reader, plan, name, routes)
    snapshot = Snapshot(plan.stack, plan.platform, to_plain_values(plan), tuple(resources))
    yield LiveNetwork(snapshot, f"a security list of {name}")


def _live_resource(token: str, name: str, found: Any) -> ReviewedResource:
    inputs = as_program_inputs(found)
    for key in ("ingressSecurityRules", "egressSecurityRules"):
        if key in inputs:
            inputs[key] = [as_rule(rule) for rule in inputs[key]]
    # Of a subnet in a review, the name in the program counts.
    return ReviewedResource(token, name, f"live::{token}::{name}", "", inputs, id=str(found.id))


def _check_routes(reader: TenancyReader, plan: OciPlan, name: str, routes: Any) -> Iterator[Problem]:
    rules = [rule for rule in routes.route_rules or () if rule.network_entity_id]
    everywhere = [rule for rule in rules if ANYWHERE in (rule.destination, rule.cidr_block)]
    to_services = [rule for rule in rules if rule.destination_type == _SERVICES]
    place = f"the route table {routes.display_name}"
    if not (everywhere or to_services):
        yield Problem(
            f"{name} has no way to the region's services: {place} leads neither there nor to {ANYWHERE}",
            f"Make a service gateway in its VCN, and add a route to it to {place}",
        )
    if not everywhere and any(rule.target == INTERNET for rule in plan.network.rules):
        yield Problem(
            f"{name} has no way out, which this stack needs: {place} does not lead to {ANYWHERE}",
            f"Make a NAT gateway in its VCN, and add a route to it to {place}",
        )
    for rule in (*to_services, *everywhere):
        kind = (rule.network_entity_id.split(".")[1:2] or [""])[0]
        if kind in _GATEWAYS:
            gateway = reader.read(f"Read the gateway of {name}", "core", _GATEWAYS[kind], rule.network_entity_id)
            if gateway.block_traffic:
                yield Problem(
                    f"the gateway {gateway.display_name}, through which {name} reaches {rule.destination}, blocks all",
                    f"oci network {kind.removesuffix('gateway')}-gateway update --block-traffic false --"
                    f"{kind.removesuffix('gateway')}-gateway-id {rule.network_entity_id}",
                )
