# SPDX-License-Identifier: Apache-2.0
"""The values that a rehearsal compares: policies in force, mutations of rules and statements, recorded calls with their
decisions, and the needs of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Protocol

from components.plan.model import SERVICES
from components.platform.traffic import RuleInForce, ports_text
from components.values.protocols import TCP, UDP
from components.values.security_rules import LAST_PORT, Direction, Ports, SecurityRule, address_block

MutationKind = Literal["deleted", "widened", "turned around"]


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """A policy in force, with the texts of its statements. `place`: what it is attached to, or ""."""

    name: str
    place: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleMutation:
    """A change of one rule: `after` replaces `before`. It is None if the rule is deleted."""

    kind: MutationKind
    before: RuleInForce
    after: RuleInForce | None
    title: str

    def applied(self, rules: Sequence[RuleInForce]) -> tuple[RuleInForce, ...]:
        kept = (self.after if rule.key == self.before.key else rule for rule in rules)
        return tuple(rule for rule in kept if rule is not None)


@dataclass(frozen=True, slots=True)
class StatementMutation:
    kind: MutationKind
    policy: str
    before: str
    after: str | None
    title: str

    def applied(self, policies: Sequence[PolicyInForce]) -> tuple[PolicyInForce, ...]:
        return tuple(self._applied(one) if one.name == self.policy else one for one in policies)

    def _applied(self, policy: PolicyInForce) -> PolicyInForce:
        kept = (self.after if text == self.before else text for text in policy.statements)
        return replace(policy, statements=tuple(text for text in kept if text is not None))


def rule_mutations(rules: Sequence[RuleInForce]) -> Iterator[RuleMutation]:
    for rule in rules:
        yield RuleMutation("deleted", rule, None, f"without {rule.title}")
        wider = _wider_rule(rule)
        if wider is not None:
            now = ports_text(wider.ports, wider.protocol)
            yield RuleMutation("widened", rule, wider, f"{rule.title}: widened to {now}")
        other: Direction = "egress" if rule.direction == "ingress" else "ingress"
        yield RuleMutation("turned around", rule, replace(rule, direction=other), f"{rule.title}: as {other}")


def _wider_rule(rule: RuleInForce) -> RuleInForce | None:
    """The rule with one more port. None if it already covers every port."""
    if rule.ports is None or rule.protocol is None:
        return None
    first, last = rule.ports
    if last < LAST_PORT:
        return replace(rule, ports=(first, last + 1))
    return replace(rule, ports=(first - 1, last)) if first > 1 else None


Mutation = RuleMutation | StatementMutation


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One kind of call: who called what, how often, and which statements (`by`) allowed it.

    `principal` and `target` are in the platform's own form: only its `AccessFacts` read them.
    """

    operation: str
    principal: Any
    who: str
    permissions: tuple[str, ...]
    target: Any
    times: int
    allowed: bool
    by: tuple[tuple[str, str, str], ...]
    missing: tuple[str, ...]
    at: datetime

    def rests_on(self, policy: str, statement: str) -> bool:
        return any((name, text) == (policy, statement) for _, name, text in self.by)


def read_decision(
    row: Mapping[str, Any], principal: Any, who: str, target: Any, missing: Iterable[str]
) -> RecordedCall:
    """A row of a local cloud's record of decisions."""
    return RecordedCall(
        operation=row["operation"],
        principal=principal,
        who=who,
        permissions=tuple(row["permissions"]),
        target=target,
        times=int(row["times"]),
        allowed=bool(row["allowed"]),
        by=tuple((one["permission"], one["policy"], one["statement"]) for one in row["by"]),
        missing=tuple(missing),
        at=datetime.fromisoformat(row["time"]),
    )


@dataclass(frozen=True, slots=True)
class LostCall:
    """A call that would have been refused, and the permissions that it would have lacked."""

    call: RecordedCall
    missing: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.call.who} lacks {', '.join(self.missing)} for {self.call.operation}"


class AccessFacts(Protocol):
    """Decides calls by the policies of one platform, each in its own policy language."""

    @property
    def policies(self) -> tuple[PolicyInForce, ...]: ...

    def refused(self, calls: Sequence[RecordedCall], policies: Iterable[PolicyInForce]) -> tuple[LostCall, ...]:
        """The calls that were allowed, and that these policies would refuse."""

    def mutations(self) -> Iterator[StatementMutation]:
        """Changes of one statement each."""

    def inferred(self, call: RecordedCall) -> tuple[str, ...]:
        """The permissions of a call that no document names."""


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    text: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlannedNeeds:
    """The rules and statements of the plan. If `least` is true, the plan is meant to be minimal.

    The defaults are for platforms without a policy language and a policy pack. Other platforms override them.
    """

    least: bool
    rules: tuple[SecurityRule, ...]
    statements: tuple[PlannedStatement, ...]
    list_tags: Mapping[str, str] = field(default_factory=dict)
    policy_tags: Mapping[str, str] = field(default_factory=dict)

    def why(self, text: str) -> str:
        """The reasons why the plan has a statement."""
        return "; ".join(dict.fromkeys(why for one in self.statements if one.text == text for why in one.why))

    def beyond_ports(self, rule: RuleInForce) -> tuple[int, ...]:
        """The ports that a rule opens although the plan does not ask for them."""
        # A rule for every protocol is judged by its ports of TCP.
        protocol = UDP if rule.protocol == UDP else TCP
        alike = [
            one
            for one in self.rules
            if one.direction == rule.direction
            and one.protocol in (None, protocol)
            and _is_same_peer(one.peer, rule.called or rule.peer)
        ]
        planned_ports = set().union(*(_each_port(one.ports) for one in alike)) if alike else set[int]()
        return tuple(sorted(_each_port(rule.ports) - planned_ports))

    def beyond_grants(self, text: str) -> tuple[str, ...]:
        """What a statement grants that no planned statement gives to the same subject in the same place."""
        return ()

    def refused_list(self, in_force: Iterable[RuleInForce]) -> frozenset[str]:
        """The ids of the policy pack's rules that refuse these security rules."""
        return frozenset()

    def refused_policies(self, policies: Iterable[PolicyInForce]) -> frozenset[str]:
        """The ids of the policy pack's rules that refuse these policies."""
        return frozenset()


def _each_port(ports: Ports) -> frozenset[int]:
    return frozenset(range(1, LAST_PORT + 1) if ports is None else range(ports[0], ports[1] + 1))


def _is_same_peer(planned_peer: str, peer: str) -> bool:
    block = address_block(peer)
    if planned_peer == SERVICES:
        return block is None
    planned_block = address_block(planned_peer)
    return planned_peer == peer if planned_block is None else block == planned_block
