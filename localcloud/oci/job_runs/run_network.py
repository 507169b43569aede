# SPDX-License-Identifier: Apache-2.0
"""The network of a run's nodes: their subnet, their VNICs, and the security rules in force for each VNIC.

The rules are those of the subnet's security lists and of the VNIC's groups.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from ipaddress import IPv4Network
from typing import Any

from components.oci.types.security_rules import PEER_ENDS, read_security_rule
from components.values.security_rules import DIRECTIONS, Direction, SecurityRule
from localcloud.hosts.assignment import CannotStartError, Interface, NetworkReach, Subnet
from localcloud.hosts.firewall import FirewallRule, UnreadableRuleError
from localcloud.oci.access_decisions import may_attach
from localcloud.oci.operations import OciCloud
from localcloud.oci.services.network import security, subnets
from localcloud.oci.services.network.gateways import gateway_services, service_addresses
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server.api_errors import ApiError


def attach_run_vnics(cloud: OciCloud, run: StoredResource, subnet: StoredResource, count: int) -> list[StoredResource]:
    """A VNIC for every node, by rank."""
    if not may_attach(cloud.access, subnet):
        raise CannotStartError(
            f"The Data Science service may not use the subnet {subnet.id}: a policy must let service datascience"
            " use virtual-network-family in its compartment"
        )
    try:
        with cloud.store.transaction():
            return subnets.attach_vnics(cloud.store, run, subnet, count)
    except ApiError as error:
        raise CannotStartError(error.message) from None


def subnet_of(subnet: StoredResource) -> Subnet:
    block = IPv4Network(subnet.body["cidrBlock"])
    router = str(block[1])
    return Subnet(subnet.id, subnet.parent, router, subnets.derive_mac_address(router), block.prefixlen)


def interface_of(cloud: OciCloud, vnic: StoredResource) -> Interface:
    def reach() -> NetworkReach | None:
        subnet = cloud.store.get(vnic.parent)
        if subnet is None:
            return None
        return NetworkReach(rules_of(cloud.store, subnet, vnic), reachable_destinations(cloud.store, subnet))

    return Interface(vnic.id, str(vnic.body["privateIp"]), str(vnic.body["macAddress"]), reach)


def rules_of(store: StateStore, subnet: StoredResource, vnic: StoredResource) -> tuple[FirewallRule, ...]:
    rules: list[FirewallRule] = []
    for identifier in subnet.body.get("securityListIds") or []:
        resource = store.get(identifier)
        rules += _security_list_rules(store, resource) if resource else []
    for identifier in vnic.body.get("nsgIds") or []:
        resource = store.get(identifier)
        rules += _network_group_rules(store, resource) if resource else []
    return tuple(rules)


def _security_list_rules(store: StateStore, security_list: StoredResource) -> Iterator[FirewallRule]:
    for direction in DIRECTIONS:
        for index, body in enumerate(security_list.body.get(f"{direction}SecurityRules") or []):
            yield _read_firewall_rule(store, security_list.id, direction, index, body)


def _network_group_rules(store: StateStore, group: StoredResource) -> Iterator[FirewallRule]:
    for direction in DIRECTIONS:
        own = [body for body in group.body.get("rules") or [] if body["direction"].lower() == direction]
        for index, body in enumerate(own):
            yield _read_firewall_rule(store, group.id, direction, index, body)


def _read_firewall_rule(
    store: StateStore, owner: str, direction: Direction, index: int, body: Mapping[str, Any]
) -> FirewallRule:
    """A rule. It is validated again, because an older version may have stored a rule that this one refuses."""
    try:
        security.check_rule(dict(body), PEER_ENDS[direction])
    except (ApiError, AttributeError, KeyError, TypeError, ValueError) as error:
        why = error.message if isinstance(error, ApiError) else repr(error)
        raise UnreadableRuleError(f"{direction} rule {index} of {owner} cannot be enforced: {why}") from None
    rule = read_security_rule(body, direction)
    stated = {name: value for name, value in body.items() if name not in ("description", "timeCreated", "isValid")}
    key = hashlib.sha256(json.dumps([owner, direction, stated], sort_keys=True).encode()).hexdigest()[:16]
    return FirewallRule(**vars(rule), list=owner, index=index, peers=_peer_networks(store, rule), key=key)


def _peer_networks(store: StateStore, rule: SecurityRule) -> tuple[IPv4Network, ...]:
    if rule.peer_kind == "services":
        return _ipv4_networks(service_addresses(rule.peer))
    if rule.peer_kind == "group":
        members = [vnic for vnic in store.live("vnic") if rule.peer in (vnic.body.get("nsgIds") or [])]
        return _ipv4_networks(str(vnic.body["privateIp"]) for vnic in members)
    return _ipv4_networks((rule.peer,))


def _ipv4_networks(blocks: Iterable[str]) -> tuple[IPv4Network, ...]:
    """The IPv4 blocks: no node here has an IPv6 address."""
    networks = (security.parse_cidr("the peer", each) for each in blocks)
    return tuple(network for network in networks if isinstance(network, IPv4Network))


def reachable_destinations(store: StateStore, subnet: StoredResource) -> tuple[str, ...]:
    """The address blocks that nodes reach through the subnet's router, sorted. Others are unreachable."""
    vcn, table = store.get(subnet.parent), store.get(str(subnet.body.get("routeTableId")))
    blocks = set(vcn.body["cidrBlocks"] if vcn else ())
    for rule in (table.body.get("routeRules") or []) if table else []:
        gateway = store.get(str(rule["networkEntityId"]))
        if gateway and gateway.live and not gateway.body.get("blockTraffic"):
            blocks |= set(_gateway_destinations(gateway, str(rule["destination"])))
    return tuple(sorted({*_ipv4_destinations(blocks)} - {str(subnet.body["cidrBlock"])}))


def _ipv4_destinations(destinations: Iterable[str]) -> Iterator[str]:
    for destination in destinations:
        with suppress(ValueError):  # not IPv4, and no node here has an IPv6 address
            yield str(IPv4Network(destination, strict=False))


def _gateway_destinations(gateway: StoredResource, destination: str) -> Iterator[str]:
    """The destinations behind a gateway. Nodes have no public address, so there are none behind an internet gateway."""
    if gateway.kind == "nat-gateway":
        yield destination
    elif gateway.kind == "service-gateway":
        attached = {service["serviceId"] for service in gateway.body.get("services") or []}
        if any(service["id"] in attached and service["cidrBlock"] == destination for service in gateway_services()):
            yield from service_addresses(destination)
