# SPDX-License-Identifier: Apache-2.0
"""Validates security rules and routes. The API uses this before it stores them, and the hosts before they enforce them,
so that only numbers and addresses reach the firewall."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from components.values.protocols import EVERY_PROTOCOL, ICMP, ICMPV6, TCP, UDP
from localcloud.oci import kinds, ocids
from localcloud.oci.kinds import ResourceKind
from localcloud.oci.operations import ApiCall
from localcloud.oci.paging import plain_page
from localcloud.oci.services.network.gateways import SERVICE, VERSION, gateway_services
from localcloud.oci.tenancy_store import StoredResource
from localcloud.server import http
from localcloud.server.api_errors import ApiError, invalid_parameter
from localcloud.server.http import Json, Reply, whole_number

Range = tuple[int, int]
_LAST_BYTE, _LAST_PORT = 255, 65535
# The options of a rule, and the protocols that have them.
_OPTIONS: Mapping[str, tuple[int, ...]] = {"tcpOptions": (TCP,), "udpOptions": (UDP,), "icmpOptions": (ICMP, ICMPV6)}
MAXIMUM_RULES = 120
MOST_RULES_OF_A_LIST = 200
_LENGTH = re.compile(r"0|[1-9][0-9]{0,2}")
# The group's rules. OCI's model lacks this field, so clients never see it.
_RULES = "rules"

NSG = ResourceKind(
    "network-security-group", "NetworkSecurityGroup", SERVICE, f"{VERSION}/networkSecurityGroups",
    "networkSecurityGroupId", ocids.NETWORK, parent_field="vcnId", references={"vcnId": "vcn"},
)  # fmt: skip


def check_rule(rule: Json, end: str) -> None:
    """Raises InvalidParameter for a rule that cannot be enforced. `end` is `source` or `destination`."""
    protocol = str(rule["protocol"])
    number = parse_protocol_number(protocol)
    check_end(end, str(rule.get(f"{end}Type") or "CIDR_BLOCK"), str(rule[end]))
    for options, protocols in _OPTIONS.items():
        if rule.get(options) and number not in protocols:
            raise invalid_parameter(f"{options} is not allowed in a rule for protocol {protocol}")
    for options in ("tcpOptions", "udpOptions"):
        for ports in (rule.get(options) or {}).values():
            parse_port_range(ports)
    if rule.get("icmpOptions"):
        parse_icmp_options(rule["icmpOptions"])


def parse_protocol_number(text: str) -> int | None:
    """The number of an IP protocol; None for all of them."""
    if text == EVERY_PROTOCOL:
        return None
    number = whole_number(text)
    if number is None or number > _LAST_BYTE or str(number) != text:
        raise invalid_parameter(
            f"protocol must be all or the number of an IP protocol, such as 6 for TCP, not {text[:80]!r}"
        )
    return number


def parse_port_range(stated: Mapping[str, Any]) -> Range:
    first, last = stated["min"], stated["max"]
    if not (_is_number(first, 1, _LAST_PORT) and _is_number(last, first, _LAST_PORT)):
        raise invalid_parameter(f"{first}-{last} is not a range of ports")
    return first, last


def parse_icmp_options(stated: Mapping[str, Any]) -> tuple[int, int | None]:
    kind, code = stated.get("type"), stated.get("code")
    for name, value in (("type", kind), ("code", 0 if code is None else code)):
        if not _is_number(value, 0, _LAST_BYTE):
            raise invalid_parameter(f"icmpOptions.{name} must be a number from 0 to {_LAST_BYTE}, not {value}")
    return stated["type"], code


def check_end(name: str, kind: str, value: str) -> None:
    """Raises unless the end of a rule or a route is a block of addresses, a service's label, or a group."""
    if kind == "CIDR_BLOCK":
        parse_cidr(name, value)
    elif kind == "SERVICE_CIDR_BLOCK":
        labels = [str(service["cidrBlock"]) for service in gateway_services()]
        if value not in labels:
            raise invalid_parameter(
                f"{name} must be one of the services' labels {', '.join(labels)}, not {value[:80]!r}"
            )


def parse_cidr(name: str, cidr: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(cidr, strict=False)
    except ValueError:
        raise invalid_parameter(f"{name} must be a block of addresses in CIDR notation, not {cidr[:80]!r}") from None


def require_cidr_form(name: str, kind: str, value: str) -> None:
    """Raises unless a block of addresses has OCI's form: `10.0.0.0/8`, not `/08` or `/255.0.0.0`. Rules that are stored
    already are not asked, since nodes can enforce them."""
    length = value.partition("/")[2]
    if kind == "CIDR_BLOCK" and "/" in value and not _LENGTH.fullmatch(length):
        raise invalid_parameter(f"{name} must be a block of addresses in CIDR notation, not {value[:80]!r}")


def require_few(what: str, rules: Sequence[Json]) -> None:
    """Raises beyond OCI's limit for the rules of a list in one direction, and for the rules of a route table."""
    if len(rules) > MOST_RULES_OF_A_LIST:
        reason = f"{what} has {len(rules)} rules; at most {MOST_RULES_OF_A_LIST} are allowed"
        raise ApiError(400, "LimitExceeded", reason)


def _is_number(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def list_rules(call: ApiCall) -> Reply:
    direction = call.query.get("direction")
    rules = _group_rules(kinds.find_living(NSG, call))
    wanted = [rule for rule in rules if direction in (None, rule["direction"])]
    page, headers = plain_page(wanted, call.query, MAXIMUM_RULES)
    return Reply(200, page, headers)


def add_rules(call: ApiCall) -> Reply:
    group = kinds.find_living(NSG, call)
    added = [
        _complete_rule(call, {**rule, "id": secrets.token_hex(3).upper()})
        for rule in call.details().get("securityRules", [])
    ]
    rules = _group_rules(group) + added
    if len(rules) > MAXIMUM_RULES:
        raise invalid_parameter(f"a network security group has at most {MAXIMUM_RULES} rules")
    _keep_rules(call, group, rules)
    return Reply(200, {"securityRules": added})


def update_rules(call: ApiCall) -> Reply:
    group = kinds.find_living(NSG, call)
    changed = {rule["id"]: _complete_rule(call, rule) for rule in call.details().get("securityRules", [])}
    _require_rules(group, list(changed))
    _keep_rules(call, group, [changed.get(rule["id"], rule) for rule in _group_rules(group)])
    return Reply(200, {"securityRules": list(changed.values())})


def remove_rules(call: ApiCall) -> Reply:
    group = kinds.find_living(NSG, call)
    gone = call.details().get("securityRuleIds", [])
    _require_rules(group, gone)
    _keep_rules(call, group, [rule for rule in _group_rules(group) if rule["id"] not in gone])
    return Reply(204)


def list_vnics(call: ApiCall) -> Reply:
    kinds.find_living(NSG, call)
    return Reply(200, [])  # job runs are not members of groups, and nothing else here has VNICs


def _group_rules(group: StoredResource) -> list[Json]:
    return list(group.body.get(_RULES, []))


def _require_rules(group: StoredResource, identifiers: list[str]) -> None:
    present = {rule["id"] for rule in _group_rules(group)}
    if unknown := [identifier for identifier in identifiers if identifier not in present]:
        raise invalid_parameter(f"the group has no rule {unknown[0]}")


def _keep_rules(call: ApiCall, group: StoredResource, rules: list[Json]) -> None:
    call.store.put(group, body={**group.body, _RULES: rules})


def _complete_rule(call: ApiCall, rule: Json) -> Json:
    end = "source" if rule["direction"] == "INGRESS" else "destination"
    if not rule.get(end):
        raise invalid_parameter(f"a rule for {rule['direction']} needs a {end}")
    check_rule(rule, end)
    require_cidr_form(end, str(rule.get(f"{end}Type") or "CIDR_BLOCK"), str(rule[end]))
    if rule.get(f"{end}Type") == "NETWORK_SECURITY_GROUP":
        kinds.require_references(call, {end: NSG.name}, rule)
    defaults = {f"{end}Type": "CIDR_BLOCK", "isStateless": False, "isValid": True}
    return {**defaults, **rule, "timeCreated": http.format_rfc3339(http.current_moment())}
