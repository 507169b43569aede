# SPDX-License-Identifier: Apache-2.0
"""Mutations: each deletes, widens or turns around one rule or one statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from components.oci import iam
from components.oci.iam.parse import parse
from components.oci.iam.permissions import verb_covers
from components.oci.iam.statement import VERBS
from components.platform.traffic import EVERY_PROTOCOL, RuleInForce, ports_text
from rehearsal.calls import PolicyInForce

MutationKind = Literal["deleted", "widened", "turned around"]
_LAST_PORT = 65535


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


def statement_mutations(policies: Sequence[PolicyInForce]) -> Iterator[StatementMutation]:
    subjects = list(dict.fromkeys(parse(text).subject for policy in policies for text in policy.statements))
    for policy in policies:
        for text in policy.statements:
            yield StatementMutation("deleted", policy.name, text, None, f"without `{text}`")
            for wider, how in _wider_statements(parse(text)):
                yield StatementMutation("widened", policy.name, text, iam.to_text(wider), f"`{text}`: {how}")
            yield from _turned(policy.name, text, subjects)


def _turned(policy: str, text: str, subjects: Sequence[iam.Subject]) -> Iterator[StatementMutation]:
    """The statement with another subject in place of its own."""
    statement = parse(text)
    others = [subject for subject in subjects if subject != statement.subject and subject.kind != "service"]
    if others:
        given = replace(statement, subject=others[0])
        after = iam.to_text(given)
        yield StatementMutation("turned around", policy, text, after, f"`{text}`: for another, `{after}`")


def _wider_statements(statement: iam.Statement) -> Iterator[tuple[iam.Statement, str]]:
    grant = wider_grant(statement.grant)
    if grant is not None:
        yield replace(statement, grant=grant), f"as {iam.to_text(replace(statement, grant=grant))}"
    if statement.condition is not None:
        yield replace(statement, condition=None), "without its condition"


def wider_grant(grant: iam.Grant) -> iam.Grant | None:
    """The grant with the next larger verb. For single permissions: the smallest verb that covers more than them."""
    if isinstance(grant, iam.PermissionGrant):
        needed = frozenset(grant.permissions)
        kinds = dict.fromkeys(kind for kind in map(iam.type_of, grant.permissions) if kind)
        for kind in kinds:
            for verb in VERBS:
                if needed < verb_covers(verb, kind):
                    return iam.VerbGrant(verb, kind)
        return None
    position = VERBS.index(grant.verb)
    return replace(grant, verb=VERBS[position + 1]) if position + 1 < len(VERBS) else None
