# SPDX-License-Identifier: Apache-2.0
"""Which rules and statements OCI's plans ask for, as a rehearsal compares them with what was used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from components.oci import iam
from components.oci import rules as oci_rules
from components.oci import statements as oci_statements
from components.oci.iam.parse import parse
from components.oci.plan import OciPlan
from components.platform.mutations import PolicyInForce
from components.platform.planned import PlannedNeeds, PlannedRule, PlannedStatement
from components.platform.traffic import RuleInForce, is_network
from policies.rule import JudgedResource, refusing

_SECURITY_LIST = "oci:Core/securityList:SecurityList"
_POLICY = "oci:Identity/policy:Policy"


class OciPlannedNeeds(PlannedNeeds):
    """Security lists, and policies that are sentences."""

    __slots__ = ()

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
        return refusing(JudgedResource(_SECURITY_LIST, {**sides, "freeformTags": dict(self.list_tags)}))

    def refused_policies(self, policies: Iterable[PolicyInForce]) -> frozenset[str]:
        refused: set[str] = set()
        for policy in policies:
            tags = dict(self.policy_tags)
            refused |= refusing(JudgedResource(_POLICY, {"statements": list(policy.statements), "freeformTags": tags}))
        return frozenset(refused)


def _properties(rule: RuleInForce) -> dict[str, Any]:
    end = "source" if rule.direction == "ingress" else "destination"
    kind = "CIDR_BLOCK" if is_network(rule.peer) else "SERVICE_CIDR_BLOCK"
    ports = {"tcpOptions": {"min": rule.ports[0], "max": rule.ports[1]}} if rule.ports else {}
    return {end: rule.peer, f"{end}Type": kind, "protocol": rule.protocol, **ports}


def planned_needs(plan: OciPlan, network_of: OciPlan | None = None, access_of: OciPlan | None = None) -> PlannedNeeds:
    """From plans alone, whatever a cloud made of them. The others are of stacks from which this one takes a part."""
    net, access = network_of or plan, access_of or plan
    network, lines = oci_rules.security_rules(net.network), oci_statements.policy_lines(access)
    rules = [
        PlannedRule(direction, rule.peer, (rule.ports.first, rule.ports.last) if rule.ports else None, rule.description)
        for direction, side in (("ingress", network.ingress), ("egress", network.egress))
        for rule in side
    ]
    return OciPlannedNeeds(
        least=access.access.mode == "least-privilege" and net.network.mode == "least",
        rules=tuple(rules),
        statements=tuple(PlannedStatement(line.text, line.why) for line in lines),
        list_tags={**net.tags, **oci_rules.list_tags(net.network)},
        policy_tags={**access.tags, **oci_statements.policy_tags(access, lines)},
    )
