# SPDX-License-Identifier: Apache-2.0
"""What the plan asks for, in a form that the rules and statements in force are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from components.oci import iam
from components.oci.iam.parse import parse
from components.plan.model import SERVICES
from components.platform.traffic import Ports, RuleInForce, is_network
from policies.rule import JudgedResource, rules
from rehearsal.calls import PolicyInForce

SECURITY_LIST = "oci:Core/securityList:SecurityList"
POLICY = "oci:Identity/policy:Policy"


@dataclass(frozen=True, slots=True)
class PlannedRule:
    direction: str
    peer: str
    ports: Ports
    why: str


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    text: str
    why: tuple[str, ...]
    trust: iam.Trust


@dataclass(frozen=True, slots=True)
class PlannedNeeds:
    """The rules and statements of the plan. If `least` is true the plan is meant to be minimal."""

    least: bool
    rules: tuple[PlannedRule, ...]
    statements: tuple[PlannedStatement, ...]
    list_tags: Mapping[str, str] = field(default_factory=dict)
    policy_tags: Mapping[str, str] = field(default_factory=dict)

    def why(self, text: str) -> str:
        """The reasons why the plan has a statement."""
        return "; ".join(dict.fromkeys(why for one in self.statements if one.text == text for why in one.why))

    def trust(self, text: str) -> iam.Trust:
        return next((one.trust for one in self.statements if one.text == text), "documented")

    def beyond_ports(self, rule: RuleInForce) -> tuple[int, ...]:
        """The ports that a rule opens although the plan does not ask for them."""
        alike = [
            one
            for one in self.rules
            if one.direction == rule.direction and _same_peer(one.peer, rule.called or rule.peer)
        ]
        planned_ports = set().union(*(_each(one.ports) for one in alike)) if alike else set[int]()
        return tuple(sorted(_each(rule.ports) - planned_ports))

    def beyond_grants(self, text: str) -> tuple[str, ...]:
        """The permissions of a statement that no planned statement gives to the same subject in the same location."""
        statement = parse(text)
        needed: set[str] = set()
        for one in self.statements:
            other = parse(one.text)
            covers = other.condition is None or other.condition == statement.condition
            if covers and (other.subject, other.location) == (statement.subject, statement.location):
                needed |= iam.grants(other.grant)
        return tuple(sorted(iam.grants(statement.grant) - needed))

    def refused_list(self, in_force: Iterable[RuleInForce]) -> frozenset[str]:
        """The ids of the policy pack's rules that refuse a security list with these rules."""
        listed: dict[str, list[dict[str, Any]]] = {"ingress": [], "egress": []}
        for rule in in_force:
            listed[rule.direction].append(_properties(rule))
        sides = {f"{side}SecurityRules": rows for side, rows in listed.items()}
        return refused_by_pack(JudgedResource(SECURITY_LIST, {**sides, "freeformTags": dict(self.list_tags)}))

    def refused_policies(self, policies: Iterable[PolicyInForce]) -> frozenset[str]:
        refused: set[str] = set()
        for policy in policies:
            tags = dict(self.policy_tags)
            refused |= refused_by_pack(
                JudgedResource(POLICY, {"statements": list(policy.statements), "freeformTags": tags})
            )
        return frozenset(refused)


def _each(ports: Ports) -> frozenset[int]:
    return frozenset(range(1, 65536) if ports is None else range(ports[0], ports[1] + 1))


def _same_peer(planned_peer: str, peer: str) -> bool:
    if planned_peer == SERVICES:
        return not is_network(peer)
    if not is_network(planned_peer):
        return planned_peer == peer
    return is_network(peer) and ip_network(planned_peer, strict=False) == ip_network(peer, strict=False)


def _properties(rule: RuleInForce) -> dict[str, Any]:
    end = "source" if rule.direction == "ingress" else "destination"
    kind = "CIDR_BLOCK" if is_network(rule.peer) else "SERVICE_CIDR_BLOCK"
    ports = {"tcpOptions": {"min": rule.ports[0], "max": rule.ports[1]}} if rule.ports else {}
    return {end: rule.peer, f"{end}Type": kind, "protocol": rule.protocol, **ports}


def refused_by_pack(resource: JudgedResource) -> frozenset[str]:
    """The ids of the policy pack's mandatory rules that refuse a resource."""
    concerned = (rule for rule in rules() if resource.type in rule.types and rule.level == "mandatory")
    return frozenset(rule.id for rule in concerned if rule.verdict(resource).outcome == "fail")
