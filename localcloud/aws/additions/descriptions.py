# SPDX-License-Identifier: Apache-2.0
"""Descriptions of a security group's rules, and changes of rules for all protocols.

moto stores a description only for a rule with a CIDR. If the peer is a group, it treats the description as part of the
rule's identity. AWS identifies a rule by protocol, ports and peer, and a rule for all protocols has no ports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEY = "Description"


class _Group(dict[str, Any]):
    """A referenced group, which is compared without its description. Saved states name this class and its module."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and _without_description(self) == _without_description(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


def complete_rule(rule: Any, *given: Any, **named: Any) -> None:
    """Completes a new rule of moto."""
    rule.source_group = _Group(rule.source_group)
    # The prefix list is the eighth parameter.
    prefixes = named.get("prefix_list_id") or (given[7] if len(given) > 7 else None) or {}
    rule.trainyard_description = prefixes.get(_KEY)


def add_ports(rules: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Changes of rules in the form that moto needs: there, rules for all protocols have ports."""
    every = {"FromPort": -1, "ToPort": -1}
    return {key: {**every, **rule} if rule.get("IpProtocol") == "-1" else rule for key, rule in rules.items()}


def complete_change(rule: Any, changed: Mapping[str, Any]) -> None:
    """Completes a change of a rule after moto: its ports and its description."""
    if rule.ip_protocol == "-1":
        rule.from_port = rule.to_port = None
    # On AWS a change without a description removes it.
    text = changed.get(_KEY)
    rule.ip_range.pop(_KEY, None)
    rule.source_group.pop(_KEY, None)
    rule.trainyard_description = None
    if text is None:
        return
    if "CidrIp" in rule.ip_range or "CidrIpv6" in rule.ip_range:
        rule.ip_range[_KEY] = text
    elif rule.source_group:
        rule.source_group[_KEY] = text
    else:
        rule.trainyard_description = text


def _without_description(group: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key != _KEY}


def rule_description(rule: Any) -> str | None:
    for text in (rule.ip_range.get(_KEY), rule.source_group.get(_KEY), getattr(rule, "trainyard_description", None)):
        if text is not None:
            return str(text)
    return None
