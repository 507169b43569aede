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
from components.values.security_rules import DIRECTIONS, Direction
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
        security_list = store.get(identifier)
        for direction in DIRECTIONS:
            bodies = (security_list.body.get(f"{direction}SecurityRules") or []) if security_list else []
            rules += [_read_firewall_rule(store, identifier, direction, *numbered) for numbered in enumerate(bodies)]
    for identifier in vnic.body.get("nsgIds") or []:
        group = store.get(identifier)
        for direction in DIRECTIONS:
            bodies = (group.body.get("rules") or []) if group else []
            bodies = [body for body in bodies if body["direction"].lower() == direction]
            rules += [_read_firewall_rule(store, identifier, direction, *numbered) for numbered in enumerate(bodies)]
    return tuple(rules)


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
    peers: Iterable[str] = (rule.peer,)
    if rule.peer_kind == "services":
        peers = service_addresses(rule.peer)
    elif rule.peer_kind == "group":
        members = [vnic for vnic in store.live("vnic") if rule.peer in (vnic.body.get("nsgIds") or [])]
        peers = [str(vnic.body["privateIp"]) for vnic in members]
    networks = (security.parse_cidr("the peer", peer) for peer in peers)
    ipv4 = tuple(network for network in networks if isinstance(network, IPv4Network))  # no node here has IPv6
    return FirewallRule(**vars(rule), list=owner, index=index, peers=ipv4, key=key)


def reachable_destinations(store: StateStore, subnet: StoredResource) -> tuple[str, ...]:
    """The address blocks that nodes reach through the subnet's router, sorted. Others are unreachable."""
    vcn, table = store.get(subnet.parent), store.get(str(subnet.body.get("routeTableId")))
    blocks = set(vcn.body["cidrBlocks"] if vcn else ())
    for rule in (table.body.get("routeRules") or []) if table else []:
        gateway = store.get(str(rule["networkEntityId"]))
        if gateway and gateway.live and not gateway.body.get("blockTraffic"):
            blocks |= set(_gateway_destinations(gateway, str(rule["destination"])))
    reachable: set[str] = set()
    for block in blocks:
        with suppress(ValueError):  # not IPv4, and no node here has an IPv6 address
            reachable.add(str(IPv4Network(block, strict=False)))
    return tuple(sorted(reachable - {str(subnet.body["cidrBlock"])}))


def _gateway_destinations(gateway: StoredResource, destination: str) -> Iterator[str]:
    """The destinations behind a gateway. Nodes have no public address, so there are none behind an internet gateway."""
    if gateway.kind == "nat-gateway":
        yield destination
    elif gateway.kind == "service-gateway":
        attached = {service["serviceId"] for service in gateway.body.get("services") or []}
        if any(service["id"] in attached and service["cidrBlock"] == destination for service in gateway_services()):
            yield from service_addresses(destination)
