# SPDX-License-Identifier: Apache-2.0
"""Mutations of rules and policies in force: each deletes, widens or turns around one rule or one statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from components.platform.traffic import EVERY_PROTOCOL, RuleInForce, ports_text

MutationKind = Literal["deleted", "widened", "turned around"]
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """A policy in force, with the texts of its statements. `place`: where it is attached, if that is one."""

    name: str
    place: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleMutation:
    """`after` replaces `before`. It is None if the rule is deleted."""

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
        wider = _wider(rule)
        if wider is not None:
            now = ports_text(wider.ports, wider.protocol)
            yield RuleMutation("widened", rule, wider, f"{rule.title}: widened to {now}")
        other = "egress" if rule.direction == "ingress" else "ingress"
        yield RuleMutation("turned around", rule, replace(rule, direction=other), f"{rule.title}: as {other}")


def _wider(rule: RuleInForce) -> RuleInForce | None:
    """The rule with one port more. None if it already covers every port."""
    if rule.ports is None or rule.protocol == EVERY_PROTOCOL:
        return None
    first, last = rule.ports
    if last < _LAST_PORT:
        return replace(rule, ports=(first, last + 1))
    return replace(rule, ports=(first - 1, last)) if first > 1 else None


Mutation = RuleMutation | StatementMutation
