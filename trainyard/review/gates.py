# SPDX-License-Identifier: Apache-2.0
"""What makes a review fail: `--fail-on replace,exposure,access-gain,cost=N,policy,unproven`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from schemas.name_suggestions import suggest_name
from trainyard.review.changes import called
from trainyard.review.model import Review
from trainyard.review.sections import sentence

COST = "cost"


class GateError(ValueError):
    """A gate is unknown or invalid. The message is for the user."""


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    limit: float = 0.0


@dataclass(frozen=True, slots=True)
class Tripped:
    gate: str
    stack: str
    because: str


def parse(text: str) -> tuple[Gate, ...]:
    """Parses `replace,cost=500`. Raises GateError, also if no gate is named: a CI job whose variable is not set would
    always pass."""
    gates = tuple(_gate(word.strip()) for word in text.split(",") if word.strip())
    if not gates:
        raise GateError(f"no gate is named: write some of {', '.join([*_GATES, COST])}, or leave --fail-on out")
    return gates


def _gate(word: str) -> Gate:
    name, has_limit, limit = word.partition("=")
    if name != COST:
        if word.isdecimal():
            raise GateError(f"`{word}` is not a gate: write the dollars of `cost=N` without commas, as `cost=1000`")
        if name not in _GATES:
            raise GateError(f"no gate is called `{name}`: {suggest_name(name, [*_GATES, COST])}")
        if has_limit:
            raise GateError(f"`{name}` takes no number: only `cost=N` does")
        return Gate(name)
    try:
        number = float(limit)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e12:
        raise GateError(f"`{word}`: write the most dollars that the runs of a change may cost, as `cost=500`")
    return Gate(COST, number)


def tripped(reviews: Sequence[Review], gates: Sequence[Gate]) -> tuple[Tripped, ...]:
    return tuple(
        Tripped(gate.name, one.stack, because) for one in reviews for gate in gates for because in _reasons(one, gate)
    )


def _reasons(one: Review, gate: Gate) -> Iterator[str]:
    if not one.judged:
        return iter(["the stack cannot be read, so this is not known"])
    return _cost(one, gate.limit) if gate.name == COST else _GATES[gate.name](one)


def _cost(one: Review, limit: float) -> Iterator[str]:
    most = one.costs.usd_starting
    if most is None:
        yield f"what its runs can cost is not known, so it is not known to be below ${limit:,.2f}"
    elif most > limit:
        yield f"its runs can cost ${most:,.2f}, above ${limit:,.2f}"


def _replace(one: Review) -> Iterator[str]:
    for change in one.changes:
        if change.kind in ("replaced", "blocked") or (change.kind == "deleted" and change.loss):
            yield f"{called(change.type, change.name)} is {change.kind}"


def _exposure(one: Review) -> Iterator[str]:
    return (opening.words for opening in one.opened if opening.outside)


def _access_gain(one: Review) -> Iterator[str]:
    return map(sentence, one.gained)


def _policy(one: Review) -> Iterator[str]:
    return (f"{row.code}: {row.message}" for row in one.pack if row.outcome == "fail" and row.level != "advisory")


def _unproven(one: Review) -> Iterator[str]:
    return iter((*one.unproven, *one.unneeded))


_GATES: Mapping[str, Callable[[Review], Iterator[str]]] = {
    "replace": _replace,
    "exposure": _exposure,
    "access-gain": _access_gain,
    "policy": _policy,
    "unproven": _unproven,
}
