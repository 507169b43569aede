# SPDX-License-Identifier: Apache-2.0
"""Validates security rules and routes. The API checks them here before it stores them. The hosts parse them here
before they enforce them, so that only numbers and addresses reach the firewall."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from localcloud.api.errors import invalid
from localcloud.api.http import Json
from localcloud.api.services.network.gateways import services
from localcloud.api.values import whole_number

EVERY_PROTOCOL = "all"
Range = tuple[int, int]
_LAST_BYTE, _LAST_PORT = 255, 65535
_ICMP = ("1", "58")
# The options of a rule, and the protocols that have them.
_OPTIONS: Mapping[str, tuple[str, ...]] = {"tcpOptions": ("6",), "udpOptions": ("17",), "icmpOptions": _ICMP}


def check_rule(rule: Json, end: str) -> None:
    """Raises InvalidParameter for a rule that no firewall could enforce. `end` is `source` or `destination`."""
    protocol = str(rule["protocol"])
    parse_protocol(protocol)
    check_end(end, str(rule.get(f"{end}Type") or "CIDR_BLOCK"), str(rule[end]))
    for options, protocols in _OPTIONS.items():
        if rule.get(options) and protocol not in protocols:
            raise invalid(f"{options} is not allowed in a rule for protocol {protocol}")
    for options in ("tcpOptions", "udpOptions"):
        for ports in (rule.get(options) or {}).values():
            parse_port_range(ports)
    if rule.get("icmpOptions"):
        parse_icmp_options(rule["icmpOptions"])


def parse_protocol(text: str) -> int | None:
    """The number of an IP protocol; None for all of them."""
    if text == EVERY_PROTOCOL:
        return None
    number = whole_number(text)
    if number is None or number > _LAST_BYTE or str(number) != text:
        raise invalid(f"protocol must be all or the number of an IP protocol, such as 6 for TCP, not {text[:80]!r}")
    return number


def parse_port_range(stated: Mapping[str, Any]) -> Range:
    first, last = stated["min"], stated["max"]
    if not (_is_number(first, 1, _LAST_PORT) and _is_number(last, first, _LAST_PORT)):
        raise invalid(f"{first}-{last} is not a range of ports")
    return first, last


def parse_icmp_options(stated: Mapping[str, Any]) -> tuple[int, int | None]:
    kind, code = stated.get("type"), stated.get("code")
    for name, value in (("type", kind), ("code", 0 if code is None else code)):
        if not _is_number(value, 0, _LAST_BYTE):
            raise invalid(f"icmpOptions.{name} must be a number from 0 to {_LAST_BYTE}, not {value}")
    return stated["type"], code


def check_end(name: str, kind: str, value: str) -> None:
    """Raises unless a rule or a route points to a block of addresses, a service's label, or a group."""
    if kind == "CIDR_BLOCK":
        parse_cidr(name, value)
    elif kind == "SERVICE_CIDR_BLOCK":
        labels = [str(service["cidrBlock"]) for service in services()]
        if value not in labels:
            raise invalid(f"{name} must be one of the services' labels {', '.join(labels)}, not {value[:80]!r}")


def parse_cidr(name: str, cidr: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(cidr, strict=False)
    except ValueError:
        raise invalid(f"{name} must be a block of addresses in CIDR notation, not {cidr[:80]!r}") from None


def _is_number(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
