# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an existing network: addresses for the plan's nodes, a route to Oracle's services, and the planned
rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from components.oci.client.session import Session, sdk_module
from components.oci.plan import OciNetworkPlan
from components.oci.rules import SecurityRule, security_rules
from components.platform.local import network_around

_SERVICES = "SERVICE_CIDR_BLOCK"


def fields(noun: str, network: OciNetworkPlan | None, session: Session, gateway: str) -> Mapping[str, Any]:
    """The fields of a new stand-in of this kind. `network`: None if its content does not matter."""
    match noun:
        case "vcn":
            return {"cidr_blocks": [network_around(network.subnet_cidr if network else "10.0.0.0/24")]}
        case "subnet":
            return {"cidr_block": network.subnet_cidr if network else "10.0.0.0/24"}
        case "service_gateway":
            return {"services": [_models().ServiceIdRequestDetails(service_id=_services(session).id)]}
        case "route_table":
            route = _models().RouteRule(
                destination=_services(session).cidr_block, destination_type=_SERVICES, network_entity_id=gateway
            )
            return {"route_rules": [route]}
        case "security_list":
            return _rules(network, session)
    return {}


def _rules(network: OciNetworkPlan | None, session: Session) -> Mapping[str, Any]:
    if network is None:
        return {"ingress_security_rules": [], "egress_security_rules": []}
    planned, services = security_rules(network), _services(session).cidr_block
    return {
        "ingress_security_rules": list(_side("Ingress", "source", planned.ingress, services)),
        "egress_security_rules": list(_side("Egress", "destination", planned.egress, services)),
    }


def _side(model: str, end: str, rules: Iterable[SecurityRule], services: str) -> Iterable[Any]:
    of = _models()
    for rule in rules:
        ports = of.PortRange(min=rule.ports.first, max=rule.ports.last) if rule.ports else None
        options = of.TcpOptions if rule.protocol == "tcp" else of.UdpOptions
        yield getattr(of, f"{model}SecurityRule")(
            protocol=rule.number,
            description=rule.description,
            **{f"{rule.protocol}_options": options(destination_port_range=ports) if ports else None},
            **{end: services if rule.peer_type == _SERVICES else rule.peer, f"{end}_type": rule.peer_type},
        )


def _services(session: Session) -> Any:
    """The service of OCI that represents all services of the region."""
    services = session.client("core").list_services().data
    return next(service for service in services if service.name.startswith("All "))


def _models() -> Any:
    return sdk_module("core.models")
