# SPDX-License-Identifier: Apache-2.0
"""The security rules in force for a VNIC, read from the store: those of its subnet's lists and of its groups."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from localcloud.api.services.network.gateways import addresses_of
from localcloud.api.store import Resource, Store

Direction = Literal["ingress", "egress"]
Range = tuple[int, int]
_SIDES: tuple[tuple[Direction, str, str], ...] = (
    ("ingress", "ingressSecurityRules", "source"),
    ("egress", "egressSecurityRules", "destination"),
)
_OPTIONS: Mapping[str, str] = {"6": "tcpOptions", "17": "udpOptions"}


@dataclass(frozen=True)
class Rule:
    """One rule as OCI states it. `peers` are the CIDR blocks that its source or destination stands for."""

    list: str
    direction: Direction
    index: int
    protocol: str
    peer: str
    peers: tuple[str, ...]
    source_ports: Range | None = None
    ports: Range | None = None
    icmp: tuple[int, int | None] | None = None
    stateless: bool = False
    description: str = ""
    key: str = ""  # the same for as long as the rule says the same


def rules_of(store: Store, subnet: Resource, vnic: Resource) -> tuple[Rule, ...]:
    found: list[Rule] = []
    for identifier in subnet.body.get("securityListIds") or []:
        resource = store.get(identifier)
        found += _of_list(store, resource) if resource else []
    for identifier in vnic.body.get("nsgIds") or []:
        resource = store.get(identifier)
        found += _of_group(store, resource) if resource else []
    return tuple(found)


def _of_list(store: Store, security_list: Resource) -> Iterator[Rule]:
    for direction, field, end in _SIDES:
        for index, body in enumerate(security_list.body.get(field) or []):
            yield _rule(store, security_list.id, direction, index, end, body)


def _of_group(store: Store, group: Resource) -> Iterator[Rule]:
    for direction, _, end in _SIDES:
        own = [body for body in group.body.get("rules") or [] if body["direction"].lower() == direction]
        for index, body in enumerate(own):
            yield _rule(store, group.id, direction, index, end, body)


def _rule(
    store: Store, owner: str, direction: Direction, index: int, end: str, body: Mapping[str, Any]
) -> Rule:  # fmt: skip
    protocol, peer = str(body["protocol"]), str(body[end])
    options = body.get(_OPTIONS.get(protocol, "")) or {}
    icmp = body.get("icmpOptions") if protocol == "1" else None
    stated = {name: value for name, value in body.items() if name not in ("description", "timeCreated", "isValid")}
    return Rule(
        owner, direction, index, protocol, peer, _peers(store, str(body.get(f"{end}Type", "CIDR_BLOCK")), peer),
        source_ports=_range(options.get("sourcePortRange")),
        ports=_range(options.get("destinationPortRange")),
        icmp=(icmp["type"], icmp.get("code")) if icmp else None,
        stateless=bool(body.get("isStateless")),
        description=str(body.get("description") or ""),
        key=hashlib.sha256(json.dumps([owner, direction, stated], sort_keys=True).encode()).hexdigest()[:16],
    )  # fmt: skip


def _peers(store: Store, kind: str, peer: str) -> tuple[str, ...]:
    if kind == "SERVICE_CIDR_BLOCK":
        return addresses_of(peer)
    if kind == "NETWORK_SECURITY_GROUP":
        members = [vnic for vnic in store.live("vnic") if peer in (vnic.body.get("nsgIds") or [])]
        return tuple(str(vnic.body["privateIp"]) for vnic in members)
    return (peer,)


def _range(stated: Mapping[str, int] | None) -> Range | None:
    return (stated["min"], stated["max"]) if stated else None
