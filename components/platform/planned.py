# SPDX-License-Identifier: Apache-2.0
"""What the plan asks for, in a form that the rules and statements in force are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network

from components.plan.model import SERVICES
from components.platform.mutations import PolicyInForce
from components.platform.traffic import Ports, RuleInForce, is_network


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


@dataclass(frozen=True, slots=True)
class PlannedNeeds:
    """The rules and statements of the plan. If `least` is true the plan is meant to be minimal.

    What has a body is the answer where no policy language and no pack judges: a platform's own class knows better.
    """

    least: bool
    rules: tuple[PlannedRule, ...]
    statements: tuple[PlannedStatement, ...]
    list_tags: Mapping[str, str] = field(default_factory=dict)
    policy_tags: Mapping[str, str] = field(default_factory=dict)

    def why(self, text: str) -> str:
        """The reasons why the plan has a statement."""
        return "; ".join(dict.fromkeys(why for one in self.statements if one.text == text for why in one.why))

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
        """What a statement grants that no planned statement gives to the same subject in the same place."""
        return ()

    def refused_list(self, in_force: Iterable[RuleInForce]) -> frozenset[str]:
        """The ids of the policy pack's rules that refuse these security rules."""
        return frozenset()

    def refused_policies(self, policies: Iterable[PolicyInForce]) -> frozenset[str]:
        """The ids of the policy pack's rules that refuse these policies."""
        return frozenset()


def _each(ports: Ports) -> frozenset[int]:
    return frozenset(range(1, 65536) if ports is None else range(ports[0], ports[1] + 1))


def _same_peer(planned_peer: str, peer: str) -> bool:
    if planned_peer == SERVICES:
        return not is_network(peer)
    if not is_network(planned_peer):
        return planned_peer == peer
    return is_network(peer) and ip_network(planned_peer, strict=False) == ip_network(peer, strict=False)
