# SPDX-License-Identifier: Apache-2.0
"""Networks for the console: each VCN with its subnets, routes and who may reach whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from localcloud.oci.store import StateStore, StoredResource

Table = dict[str, Any]
PROTOCOLS = {"all": "all", "1": "ICMP", "6": "TCP", "17": "UDP", "58": "ICMPv6"}
RULE_COLUMNS = ["way", "protocol", "peer", "ports", "why"]


def network(store: StateStore, many: int) -> Iterator[dict[str, Any]]:
    for vcn in store.select("kind = 'vcn' AND live ORDER BY sequence DESC LIMIT ?", (many,)):
        yield {
            "name": vcn.name,
            "state": ", ".join(vcn.body.get("cidrBlocks") or []),
            "facts": [["id", vcn.id], *_gateways(store, vcn)],
            "tables": list(_tables(store, vcn, many)),
        }


def unused_defaults(store: StateStore, many: int) -> Iterator[dict[str, Any]]:
    """The lists and tables that come with each VCN and that no subnet uses."""
    for vcn in store.select("kind = 'vcn' AND live ORDER BY sequence DESC LIMIT ?", (many,)):
        tables = [table for resource, table in _rules(store, vcn, many) if _is_unused_default(store, vcn, resource)]
        if tables:
            yield {"name": vcn.name, "state": _text(vcn.body, "id"), "tables": tables}


def _is_unused_default(store: StateStore, vcn: StoredResource, resource: StoredResource) -> bool:
    defaults = (vcn.body.get("defaultSecurityListId"), vcn.body.get("defaultRouteTableId"))
    return resource.id in defaults and not store.mentioning(resource.id, ("subnet",))


def _gateways(store: StateStore, vcn: StoredResource) -> Iterator[list[str]]:
    for kind in ("internet-gateway", "nat-gateway", "service-gateway"):
        yield from ([kind.replace("-", " "), gateway.name] for gateway in store.live(kind, parent=vcn.id))


def _tables(store: StateStore, vcn: StoredResource, many: int) -> Iterator[Table]:
    subnets = store.live("subnet", parent=vcn.id)[:many]
    if subnets:
        columns = ["subnet", "addresses", "public addresses", "route table", "security lists"]
        yield {"columns": columns, "rows": [_subnet(store, subnet) for subnet in subnets]}
    for resource, table in _rules(store, vcn, many):
        if not _is_unused_default(store, vcn, resource):
            yield table
    for group in store.live("network-security-group", parent=vcn.id)[:many]:
        rows = [_rule(store, _DIRECTIONS[rule["direction"]], rule) for rule in _list(group, "rules")]
        yield {"title": f"Security group {group.name}", "columns": RULE_COLUMNS, "rows": rows}


def _rules(store: StateStore, vcn: StoredResource, many: int) -> Iterator[tuple[StoredResource, Table]]:
    """Route tables with routes, and security lists."""
    for table in store.live("route-table", parent=vcn.id)[:many]:
        rows = [
            [_text(rule, "destination"), _name(store, _text(rule, "networkEntityId"))]
            for rule in _list(table, "routeRules")
        ]
        if rows:
            yield table, {"title": f"Route table {table.name}", "columns": ["to", "through"], "rows": rows}
    for security in store.live("security-list", parent=vcn.id)[:many]:
        rules = [("in", rule) for rule in _list(security, "ingressSecurityRules")]
        rules += [("out", rule) for rule in _list(security, "egressSecurityRules")]
        rows = [_rule(store, direction, rule) for direction, rule in rules]
        yield security, {"title": f"Security list {security.name}", "columns": RULE_COLUMNS, "rows": rows}


_DIRECTIONS = {"INGRESS": "in", "EGRESS": "out"}


def _subnet(store: StateStore, subnet: StoredResource) -> list[str]:
    lists = ", ".join(_name(store, identifier) for identifier in subnet.body.get("securityListIds") or [])
    public = "no" if subnet.body.get("prohibitPublicIpOnVnic") else "yes"
    return [
        subnet.name,
        _text(subnet.body, "cidrBlock"),
        public,
        _name(store, _text(subnet.body, "routeTableId")),
        lists,
    ]


def _rule(store: StateStore, direction: str, rule: Mapping[str, Any]) -> list[str]:
    peer = _text(rule, "source") or _text(rule, "destination")
    protocol = PROTOCOLS.get(_text(rule, "protocol"), _text(rule, "protocol"))
    return [direction, protocol, _name(store, peer), _ports(rule), _text(rule, "description")]


def _ports(rule: Mapping[str, Any]) -> str:
    options = rule.get("tcpOptions") or rule.get("udpOptions") or {}
    ports = options.get("destinationPortRange")
    if not ports:
        return "all"
    return str(ports["min"]) if ports["min"] == ports["max"] else f"{ports['min']}-{ports['max']}"


def _name(store: StateStore, identifier: str) -> str:
    resource = store.get(identifier) if identifier.startswith("ocid1.") else None
    return resource.name if resource else identifier


def _text(value: Mapping[str, Any], name: str) -> str:
    return str(value.get(name) or "")


def _list(resource: StoredResource, name: str) -> list[Mapping[str, Any]]:
    return list(resource.body.get(name) or [])
