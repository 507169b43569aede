# SPDX-License-Identifier: Apache-2.0
"""What makes a review fail: `--fail-on replace,exposure,access-gain,cost=N,policy,unproven,program`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from schemas.name_suggestions import suggest_name
from trainyard.review.changes import resource_title
from trainyard.review.cost_items import costs_above
from trainyard.review.model import NO_REPOSITORY, RepositoryReview, Review
from trainyard.review.run_items import run_change_sentence
from trainyard.review.sections import permission_sentence, unknown_change_words

COST, PROGRAM = "cost", "program"


class GateError(ValueError):
    """A gate is unknown or invalid. The message is for the user."""


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    limit: float = 0.0


@dataclass(frozen=True, slots=True)
class TrippedGate:
    """`stack`: empty if what trips it lies beside the stacks, and so concerns all of them."""

    gate: str
    stack: str
    because: str

    @property
    def where(self) -> str:
        return self.stack or "every stack"


def parse_gates(text: str) -> tuple[Gate, ...]:
    """Parses `replace,cost=500`. Raises GateError, also if no gate is named: a CI job whose variable is not set would
    always pass."""
    gates = tuple(_parse_gate(word.strip()) for word in text.split(",") if word.strip())
    if not gates:
        raise GateError(f"no gate is named: write some of {', '.join(GATE_NAMES)}, or leave --fail-on out")
    return gates


def _parse_gate(word: str) -> Gate:
    name, has_limit, limit = word.partition("=")
    if name != COST:
        if word.isdecimal():
            raise GateError(f"`{word}` is not a gate: write the dollars of `cost=N` without commas, as `cost=1000`")
        if name not in _GATES:
            raise GateError(f"no gate is called `{name}`: {suggest_name(name, GATE_NAMES)}")
        if has_limit:
            raise GateError(f"`{name}` takes no number: only `cost=N` does")
        return Gate(name)
    try:
        number = float(limit)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e12:
        raise GateError(f"`{word}`: write the most dollars that a change may cost, as `cost=500`")
    return Gate(COST, number)


def find_tripped_gates(
    reviews: Sequence[Review], gates: Sequence[Gate], repository: RepositoryReview = NO_REPOSITORY
) -> tuple[TrippedGate, ...]:
    beside = repository.changes if any(gate.name == PROGRAM for gate in gates) else ()
    tripped = [TrippedGate(PROGRAM, "", change.words) for change in beside]
    for review, gate in product(reviews, gates):
        if not review.judged:
            reasons = ["the stack cannot be read, so this is not known"]
        elif gate.name == COST:
            reasons = list(costs_above(review, gate.limit))
        else:
            reasons = list(_GATES[gate.name](review))
        if review.refused and not reasons:
            reasons = ["`up` would refuse the stack, so this is not known"]
        tripped += (TrippedGate(gate.name, review.stack, because) for because in reasons)
    return tuple(tripped)


def _maybe_harmful(review: Review) -> Iterator[str]:
    """What is not judged may grant access or open a way, unless a row says that it cannot."""
    yield from (unknown_change_words(change) for change in review.unknown_changes if not change.harmless)


# The name of a gate -> what trips it.
_GATES: Mapping[str, Callable[[Review], Iterable[str]]] = {
    "replace": lambda review: (
        f"{resource_title(change.type, change.name)} is {change.kind}"
        for change in review.changes
        if change.kind in ("replaced", "blocked") or (change.kind in ("created", "changed", "deleted") and change.loss)
    ),
    "exposure": lambda review: (
        *(opening.words for opening in review.opened if opening.outside),
        *_maybe_harmful(review),
    ),
    "access-gain": lambda review: (
        *map(permission_sentence, review.gained),
        *(run_change_sentence(change) for change in review.what_runs if change.lets_in),
        *_maybe_harmful(review),
    ),
    "policy": lambda review: (
        f"{remark.code}: {remark.message}"
        for remark in review.pack
        if remark.outcome == "fail" and remark.level != "advisory"
    ),
    "unproven": lambda review: (*review.unproven, *review.unneeded),
    PROGRAM: lambda review: (change.words for change in review.program),
}
GATE_NAMES = (*_GATES, COST)
