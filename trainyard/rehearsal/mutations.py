# SPDX-License-Identifier: Apache-2.0
"""Mutation testing of rules and statements: would anything notice one that is missing, too wide or reversed?

Most mutations need no further run: the mutated rules and policies are applied to the recorded connections and calls. If
these do not detect a mutation, the policy pack or the plan may. A mutation that nothing detects is a survivor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from components.platform.evidence import (
    AccessFacts,
    PlannedNeeds,
    RecordedCall,
    RuleMutation,
    StatementMutation,
    rule_mutations,
)
from components.platform.traffic import Traffic

Fate = Literal["fails", "caught", "survives"]
# A mutation's outcome names at most this many connections, calls or rules.
NAMED = 3


@dataclass(frozen=True, slots=True)
class MutationOutcome:
    """The result of one mutation. A survivor is `explained` if the reason is known, and not a fault of the plan."""

    of: Literal["rule", "statement"]
    kind: str
    title: str
    fate: Fate
    because: str
    explained: bool = True


@dataclass(frozen=True, slots=True)
class Proof:
    outcomes: tuple[MutationOutcome, ...]

    @property
    def survivors(self) -> tuple[MutationOutcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.fate == "survives")

    @property
    def unexplained(self) -> tuple[MutationOutcome, ...]:
        return tuple(survivor for survivor in self.survivors if not survivor.explained)


def prove_by_mutations(
    traffic: Traffic, calls: Sequence[RecordedCall], access: AccessFacts, planned: PlannedNeeds
) -> Proof:
    by_rules = (rule_outcome(mutation, traffic, planned) for mutation in rule_mutations(traffic.rules))
    by_statements = (statement_outcome(mutation, calls, access, planned) for mutation in access.mutations())
    return Proof((*by_rules, *by_statements))


def rule_outcome(mutation: RuleMutation, traffic: Traffic, planned: PlannedNeeds) -> MutationOutcome:
    """Judges a mutated rule by the recorded connections, the policy pack and the plan."""

    def outcome(fate: Fate, because: str, explained: bool = True) -> MutationOutcome:
        return MutationOutcome("rule", mutation.kind, mutation.title, fate, because, explained)

    after = mutation.applied(traffic.rules)
    failing = traffic.failing(after)
    if failing:
        return outcome("fails", join_titles(traffic.pair(flow) for flow in failing))
    stopped = planned.refused_list(after) - planned.refused_list(traffic.rules)
    if stopped:
        return outcome("caught", f"policy {', '.join(sorted(stopped))}")
    beyond = planned.beyond_ports(mutation.after) if mutation.after else ()
    more = set(beyond) - set(planned.beyond_ports(mutation.before))
    if more:
        return outcome("caught", f"the plan asks for no such port: {join_titles(map(str, sorted(more)))}")
    if not traffic.enforced:
        return outcome("survives", f"no firewall was enforced here: {traffic.reason}")
    if mutation.kind == "widened":
        return outcome("survives", "the plan opens that port already, by another rule")
    # The other rules that allow the same connections.
    own = frozenset(node.address for node in traffic.nodes)
    carried = [flow for flow in traffic.flows if mutation.before.let_through(flow, own)]
    rest = [other for other in traffic.rules if other.key != mutation.before.key]
    others = [other for other in rest if any(other.let_through(flow, own) for flow in carried)]
    if others:
        # A rule for services and one for the internet may name the same port: the route table decides which is used.
        alike = any(other.peer == mutation.before.peer for other in others)
        covered = f"other rules allow the same connections: {join_titles(other.title for other in others)}"
        return outcome("survives", covered, explained=not (planned.least and alike))
    purpose = f", which it is there for: {mutation.before.description}" if mutation.before.description else ""
    return outcome("survives", f"nothing in this rehearsal connected that way{purpose}")


def statement_outcome(
    mutation: StatementMutation, calls: Sequence[RecordedCall], access: AccessFacts, planned: PlannedNeeds
) -> MutationOutcome:
    """Judges a mutated statement by the recorded calls, the policy pack and the plan."""

    def outcome(fate: Fate, because: str, explained: bool = True) -> MutationOutcome:
        return MutationOutcome("statement", mutation.kind, mutation.title, fate, because, explained)

    after = mutation.applied(access.policies)
    resting = [call for call in calls if call.allowed and call.rests_on(mutation.policy, mutation.before)]
    gone = access.refused(resting, after)
    if gone:
        return outcome("fails", join_titles(call.title for call in gone))
    stopped = planned.refused_policies(after) - planned.refused_policies(access.policies)
    if stopped:
        return outcome("caught", f"policy {', '.join(sorted(stopped))}")
    beyond = planned.beyond_grants(mutation.after) if mutation.after else ()
    more = set(beyond) - set(planned.beyond_grants(mutation.before))
    if more:
        return outcome("caught", f"the plan needs no such permission: {join_titles(sorted(more))}")
    if mutation.kind == "widened":
        return outcome("survives", "as far as the catalog knows, it grants no further permission")
    if resting:
        # The statements that allow the calls in place of the mutated one.
        rest = list(after)
        replacing = [
            text
            for policy in access.policies
            for text in policy.statements
            if text != mutation.before
            and access.refused(resting, StatementMutation("deleted", policy.name, text, None, "").applied(rest))
        ]
        others = join_titles(f"`{text}`" for text in replacing)
        return outcome("survives", f"others allow the same: {others}", explained=not planned.least)
    why = planned.why(mutation.before)
    purpose = f", which is there because {why}" if why else ""
    return outcome("survives", f"nothing in this rehearsal needed it{purpose}")


def join_titles(titles: Iterable[str]) -> str:
    """Joins the first few titles, and says how many more there are."""
    distinct = list(dict.fromkeys(titles))
    more = f"; and {len(distinct) - NAMED} more" if len(distinct) > NAMED else ""
    return "; ".join(distinct[:NAMED]) + more
