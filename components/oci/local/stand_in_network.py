# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an existing network: addresses for the plan's nodes, a route to Oracle's services, and the planned
rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.oci.client.session import Session, sdk_module
from components.oci.plan import OciNetworkPlan
from components.oci.rules import security_rules
from components.oci.types.security_rules import PEER_ENDS, PEER_TYPES
from components.platform.local import network_around
from components.values.protocols import protocol_name
from components.values.security_rules import SecurityRule

_SERVICES = "SERVICE_CIDR_BLOCK"


def stand_in_fields(noun: str, network: OciNetworkPlan | None, session: Session, gateway: str) -> Mapping[str, Any]:
    """The fields of a new stand-in of this kind. `network`: None if its content does not matter."""
    match noun:
        case "vcn":
            return {"cidr_blocks": [network_around(network.subnet_cidr if network else "10.0.0.0/24")]}
        case "subnet":
            return {"cidr_block": network.subnet_cidr if network else "10.0.0.0/24"}
        case "service_gateway":
            return {"services": [_core_models().ServiceIdRequestDetails(service_id=_all_services(session).id)]}
        case "route_table":
            route = _core_models().RouteRule(
                destination=_all_services(session).cidr_block, destination_type=_SERVICES, network_entity_id=gateway
            )
            return {"route_rules": [route]}
        case "security_list":
            if network is None:
                return {"ingress_security_rules": [], "egress_security_rules": []}
            planned, services = security_rules(network), _all_services(session).cidr_block
            return {
                "ingress_security_rules": [_stand_in_rule(rule, services) for rule in planned.ingress],
                "egress_security_rules": [_stand_in_rule(rule, services) for rule in planned.egress],
            }
    return {}


def _stand_in_rule(rule: SecurityRule, services: str) -> Any:
    models, end = _core_models(), PEER_ENDS[rule.direction]
    ports = models.PortRange(min=rule.ports[0], max=rule.ports[1]) if rule.ports else None
    protocol = protocol_name(rule.protocol)
    options = getattr(models, f"{protocol.capitalize()}Options")
    return getattr(models, f"{rule.direction.capitalize()}SecurityRule")(
        protocol=str(rule.protocol),
        description=rule.description,
        **{f"{protocol}_options": options(destination_port_range=ports) if ports else None},
        **{end: services if rule.peer_kind == "services" else rule.peer, f"{end}_type": PEER_TYPES[rule.peer_kind]},
    )


def _all_services(session: Session) -> Any:
    """The service of OCI that represents all services of the region."""
    services = session.client("core").list_services().data
    return next(service for service in services if service.name.startswith("All "))


def _core_models() -> Any:
    return sdk_module("core.models")
