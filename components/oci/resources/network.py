# SPDX-License-Identifier: Apache-2.0
"""VCN, private subnet, gateways, routes, and one explicit security list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_oci as oci

from components.oci.plan import OciNetworkPlan
from components.oci.rules import ANYWHERE, SecurityRules, list_tags, security_lists, security_rules
from components.oci.types.security_rules import PEER_ENDS, PEER_TYPES
from components.values.protocols import protocol_name
from components.values.security_rules import SecurityRule

# Every region has one service with such a name. It includes bucket, registry, logging and Data Science.
ALL_SERVICES = r"All .* Services In Oracle Services Network"


@dataclass(frozen=True)
class NetworkArgs:
    plan: OciNetworkPlan
    compartment: str
    prefix: str
    tags: Mapping[str, str]


@dataclass(frozen=True)
class Services:
    """The region's services, by the names for a gateway and for a rule."""

    id: pulumi.Output[str]
    cidr: pulumi.Output[str]


class Network(pulumi.ComponentResource):
    """The network of one stack; in an existing VCN only the subnet and its list."""

    subnet_id: pulumi.Output[str]
    vcn_id: pulumi.Output[str]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard:oci:Network", name, None, opts)
        self._args = args
        self._inside = pulumi.ResourceOptions(parent=self)
        self._shared = {"compartment_id": args.plan.compartment or args.compartment, "freeform_tags": dict(args.tags)}
        answer = oci.core.get_services_output(
            filters=[{"name": "name", "values": [ALL_SERVICES], "regex": True}],
            opts=pulumi.InvokeOptions(parent=self._inside.parent),
        )
        services = Services(answer.services[0].id, answer.services[0].cidr_block)
        routes: pulumi.Input[str] | None
        if args.plan.vcn:
            self.vcn_id, routes = pulumi.Output.from_input(args.plan.vcn), args.plan.route_table
        else:
            self.vcn_id = self._vcn()
            routes = self._routes(services)
        self.subnet_id = self._subnet(routes, self._security_lists(services))
        self.register_outputs({"subnet_id": self.subnet_id, "vcn_id": self.vcn_id})

    def _vcn(self) -> pulumi.Output[str]:
        cidr, named = self._args.plan.cidr, f"{self._args.prefix}-network"
        return oci.core.Vcn("vcn", cidr_blocks=[cidr], display_name=named, opts=self._inside, **self._shared).id

    def _routes(self, services: Services) -> pulumi.Output[str]:
        """Routes to Oracle's services through the service gateway. A route to the internet is made only if the stack
        requests it."""
        gateway = oci.core.ServiceGateway(
            "services",
            vcn_id=self.vcn_id,
            services=[{"service_id": services.id}],
            display_name=f"{self._args.prefix}-services",
            opts=self._inside,
            **self._shared,
        )
        rules: list[Any] = [_route_rule(services.cidr, "SERVICE_CIDR_BLOCK", gateway.id, "Oracle's services")]
        if self._args.plan.nat:
            named = f"{self._args.prefix}-nat"
            nat = oci.core.NatGateway("nat", vcn_id=self.vcn_id, display_name=named, opts=self._inside, **self._shared)
            rules.append(_route_rule(ANYWHERE, "CIDR_BLOCK", nat.id, "out through NAT, never in"))
        return oci.core.RouteTable(
            "routes",
            vcn_id=self.vcn_id,
            route_rules=rules,
            display_name=f"{self._args.prefix}-routes",
            opts=self._inside,
            **self._shared,
        ).id

    def _security_lists(self, services: Services) -> list[pulumi.Output[str]]:
        parts = security_lists(security_rules(self._args.plan))
        return [
            self._security_list("rules" if number == 1 else f"rules-{number}", part, services)
            for number, part in enumerate(parts, 1)
        ]

    def _security_list(self, name: str, rules: SecurityRules, services: Services) -> pulumi.Output[str]:
        return oci.core.SecurityList(
            name,
            vcn_id=self.vcn_id,
            ingress_security_rules=[_list_rule(rule, services) for rule in rules.ingress],
            egress_security_rules=[_list_rule(rule, services) for rule in rules.egress],
            display_name=f"{self._args.prefix}-{name}",
            opts=self._inside,
            **self._shared | {"freeform_tags": {**self._args.tags, **list_tags(self._args.plan)}},
        ).id

    def _subnet(self, routes: pulumi.Input[str] | None, rules: list[pulumi.Output[str]]) -> pulumi.Output[str]:
        return oci.core.Subnet(
            "subnet",
            vcn_id=self.vcn_id,
            cidr_block=self._args.plan.subnet_cidr,
            prohibit_public_ip_on_vnic=True,
            route_table_id=routes,
            security_list_ids=rules,
            display_name=f"{self._args.prefix}-nodes",
            opts=self._inside,
            **self._shared,
        ).id


def _route_rule(
    destination: pulumi.Input[str], kind: str, gateway: pulumi.Output[str], why: str
) -> dict[str, pulumi.Input[str]]:
    return {"destination": destination, "destination_type": kind, "network_entity_id": gateway, "description": why}


def _list_rule(rule: SecurityRule, services: Services) -> dict[str, Any]:
    end = PEER_ENDS[rule.direction]
    # Destination ports. All source ports are allowed.
    ports = (
        {f"{protocol_name(rule.protocol)}_options": {"min": rule.ports[0], "max": rule.ports[1]}} if rule.ports else {}
    )
    return {
        "protocol": str(rule.protocol),
        end: services.cidr if rule.peer_kind == "services" else rule.peer,
        f"{end}_type": PEER_TYPES[rule.peer_kind],
        "stateless": rule.stateless,
        "description": rule.description,
        **ports,
    }
