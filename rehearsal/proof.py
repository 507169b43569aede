# SPDX-License-Identifier: Apache-2.0
"""Whether anything would notice a rule or statement that is gone, too wide or the wrong way round.

Recorded connections and calls answer for most mutations without a run: a rule set or a set of policies is a function of
them. What they cannot answer, the policy pack and the plan's own needs do, or the mutation is told as a survivor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rehearsal.calls import AccessFacts, PolicyInForce, RecordedCall, newly_refused
from rehearsal.mutations import RuleMutation, StatementMutation, rule_mutations, statement_mutations
from rehearsal.planned import PlannedNeeds
from rehearsal.traffic import RuleInForce, Traffic, allows

Fate = Literal["fails", "caught", "survives"]
# So many culprits are named of one mutation.
NAMED = 3


@dataclass(frozen=True, slots=True)
class MutationOutcome:
    """What became of one mutation. A survivor is explained when the reason is known and is no fault of the plan."""

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
        return tuple(one for one in self.outcomes if one.fate == "survives")

    @property
    def unexplained(self) -> tuple[MutationOutcome, ...]:
        return tuple(one for one in self.survivors if not one.explained)


def prove(traffic: Traffic, calls: Sequence[RecordedCall], grounds: AccessFacts, planned: PlannedNeeds) -> Proof:
    by_rules = (rule_outcome(one, traffic, planned) for one in rule_mutations(traffic.rules))
    by_statements = (statement_outcome(one, calls, grounds, planned) for one in statement_mutations(grounds.policies))
    return Proof((*by_rules, *by_statements))


def rule_outcome(mutation: RuleMutation, traffic: Traffic, planned: PlannedNeeds) -> MutationOutcome:
    """Judged against every connection that was seen."""

    def told(fate: Fate, because: str, explained: bool = True) -> MutationOutcome:
        return MutationOutcome("rule", mutation.kind, mutation.title, fate, because, explained)

    after = mutation.applied(traffic.rules)
    failing = traffic.failing(after)
    if failing:
        return told("fails", join_titles(traffic.pair(flow) for flow in failing))
    stopped = planned.refused_list(after) - planned.refused_list(traffic.rules)
    if stopped:
        return told("caught", f"policy {', '.join(sorted(stopped))}")
    beyond = planned.beyond_ports(mutation.after) if mutation.after else ()
    more = set(beyond) - set(planned.beyond_ports(mutation.before))
    if more:
        return told("caught", f"the plan asks for no such port: {join_titles(map(str, sorted(more)))}")
    if not traffic.enforced:
        return told("survives", f"no firewall was enforced here: {traffic.reason}")
    if mutation.kind == "widened":
        return told("survives", "the plan opens that port already, by another rule")
    others = _also(mutation.before, traffic)
    if others:
        # Service and internet rules may name the same port: where packets go is the route table's choice.
        alike = any(other.peer == mutation.before.peer for other in others)
        covered = f"what it let through, others let through too: {join_titles(other.title for other in others)}"
        return told("survives", covered, explained=not (planned.least and alike))
    purpose = f", which it is there for: {mutation.before.description}" if mutation.before.description else ""
    return told("survives", f"nothing in this rehearsal connected that way{purpose}")


def _also(rule: RuleInForce, traffic: Traffic) -> list[RuleInForce]:
    """The other rules that let through what this one does."""
    own = frozenset(node.address for node in traffic.nodes)
    carried = [flow for flow in traffic.flows if allows(rule, flow, own)]
    rest = [other for other in traffic.rules if other.key != rule.key]
    return [other for other in rest if any(allows(other, flow, own) for flow in carried)]


def statement_outcome(
    mutation: StatementMutation, calls: Sequence[RecordedCall], grounds: AccessFacts, planned: PlannedNeeds
) -> MutationOutcome:
    """Judged against every call that was made."""

    def told(fate: Fate, because: str, explained: bool = True) -> MutationOutcome:
        return MutationOutcome("statement", mutation.kind, mutation.title, fate, because, explained)

    after = mutation.applied(grounds.policies)
    resting = [call for call in calls if call.allowed and call.rests_on(mutation.policy, mutation.before)]
    gone = newly_refused(resting, grounds, after)
    if gone:
        return told("fails", join_titles(one.title for one in gone))
    stopped = planned.refused_policies(after) - planned.refused_policies(grounds.policies)
    if stopped:
        return told("caught", f"policy {', '.join(sorted(stopped))}")
    beyond = planned.beyond_grants(mutation.after) if mutation.after else ()
    more = set(beyond) - set(planned.beyond_grants(mutation.before))
    if more:
        return told("caught", f"the plan needs no such permission: {join_titles(sorted(more))}")
    if mutation.kind == "widened":
        return told("survives", "as far as the catalog knows it grants nothing more")
    if resting:
        others = _instead(mutation, resting, grounds, after)
        return told("survives", f"others allow the same: {others}", explained=not planned.least)
    return told("survives", _idle(mutation.before, planned))


def _instead(
    mutation: StatementMutation, resting: Sequence[RecordedCall], grounds: AccessFacts, after: Iterable[PolicyInForce]
) -> str:
    """The statements without which, together with the mutated one, the calls would have been refused."""
    rest = list(after)
    found = [
        text
        for policy in grounds.policies
        for text in policy.statements
        if text != mutation.before
        and newly_refused(resting, grounds, StatementMutation("deleted", policy.name, text, None, "").applied(rest))
    ]
    return join_titles(f"`{text}`" for text in found)


def _idle(text: str, planned: PlannedNeeds) -> str:
    why = planned.why(text)
    return "nothing in this rehearsal needed it" + (f", which is there because {why}" if why else "")


def join_titles(titles: Iterable[str]) -> str:
    """The first few, and how many more there are."""
    distinct = list(dict.fromkeys(titles))
    more = f"; and {len(distinct) - NAMED} more" if len(distinct) > NAMED else ""
    return "; ".join(distinct[:NAMED]) + more
