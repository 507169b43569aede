# SPDX-License-Identifier: Apache-2.0
"""The addresses that a subnet's nodes can reach: their subnet, the VCN, and what the route table's gateways lead to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from ipaddress import IPv4Network

from localcloud.api.services.network.gateways import addresses_of, services
from localcloud.api.store import StateStore, StoredResource


def destinations(store: StateStore, subnet: StoredResource) -> tuple[str, ...]:
    """The address blocks that go through the subnet's router, sorted. Other addresses cannot be reached."""
    vcn, table = store.get(subnet.parent), store.get(str(subnet.body.get("routeTableId")))
    blocks = set(vcn.body["cidrBlocks"] if vcn else ())
    for rule in (table.body.get("routeRules") or []) if table else []:
        gateway = store.get(str(rule["networkEntityId"]))
        if gateway and gateway.live and not gateway.body.get("blockTraffic"):
            blocks |= set(_through(gateway, str(rule["destination"])))
    return tuple(sorted({*_ipv4(blocks)} - {str(subnet.body["cidrBlock"])}))


def _ipv4(destinations: Iterable[str]) -> Iterator[str]:
    for destination in destinations:
        with suppress(ValueError):  # nobody here has an IPv6 address
            yield str(IPv4Network(destination, strict=False))


def _through(gateway: StoredResource, destination: str) -> Iterator[str]:
    """What a gateway leads to. Nodes have no public address, so an internet gateway leads nowhere."""
    if gateway.kind == "nat-gateway":
        yield destination
    elif gateway.kind == "service-gateway":
        attached = {service["serviceId"] for service in gateway.body.get("services") or []}
        if any(service["id"] in attached and service["cidrBlock"] == destination for service in services()):
            yield from addresses_of(destination)


def router(subnet: StoredResource) -> str:
    return str(IPv4Network(subnet.body["cidrBlock"])[1])


def prefix_length(subnet: StoredResource) -> int:
    return IPv4Network(subnet.body["cidrBlock"]).prefixlen
