# SPDX-License-Identifier: Apache-2.0
"""Values with which conditions of statements and matching rules are evaluated, so that any two of them differ; and the
members of dynamic groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta

from catalog.tables import table
from components.oci.iam.evaluate import compile_condition, parse_instant, time_of_day
from components.oci.iam.statement import AllOf, AnyOf, Comparison, Condition, Exists, Pattern, Text, Variable
from components.oci.review.access import Places
from components.platform.circumstances import (
    OTHER,
    Circumstances,
    candidate_values,
    combine_circumstances,
    described_resource,
    texts_fitting_pattern,
)
from components.platform.review import Ability

_MOMENT, _MINUTE = timedelta(seconds=1), timedelta(minutes=1)
PERMISSION = "request.permission"


def comparisons_in(condition: Condition | None) -> Iterator[Comparison | Exists]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from comparisons_in(part)
        case Comparison() | Exists():
            yield condition


def values_to_test(conditions: Iterable[Condition | None]) -> dict[str, tuple[str | None, ...]]:
    """The values to test for each variable: those in conditions, another value, and none."""
    named: dict[str, set[str]] = defaultdict(set)
    patterns: dict[str, set[str]] = defaultdict(set)
    alike: list[tuple[str, str]] = []
    for leaf in (leaf for condition in conditions for leaf in comparisons_in(condition)):
        name = leaf.variable.lower()
        named[name] |= set()
        if isinstance(leaf, Exists):
            continue
        named[name].update(_moments_around_limits(leaf))
        for value in leaf.values:
            match value:
                case Text(text):
                    named[name].add(text.lower())
                case Pattern(text):
                    patterns[name].add(text.lower())
                case Variable(variable):
                    alike.append((name, variable.lower()))
    for name, texts in patterns.items():
        for text in sorted(texts):
            named[name].update(texts_fitting_pattern(text, sorted(texts)))
    # If two variables are compared with each other, both get the values of either, so that they can be equal.
    for name, other in alike:
        named[name] = named[other] = named[name] | named[other] | {"the same"}
    return {name: candidate_values(texts) for name, texts in named.items()}


def _moments_around_limits(one: Comparison) -> Iterator[str]:
    """A moment before and a moment after each time limit."""
    texts = [value.text for value in one.values if isinstance(value, Text)]
    if one.operator in ("before", "after"):
        for limit in filter(None, map(parse_instant, texts)):
            yield from ((limit - _MOMENT).isoformat(), (limit + _MOMENT).isoformat())
    elif one.operator == "between":
        for limit_of_day in filter(None, map(time_of_day, texts)):
            yield from (_moved_time(limit_of_day, -_MINUTE), _moved_time(limit_of_day, _MINUTE))


def _moved_time(moment: time, by: timedelta) -> str:
    return (datetime.combine(date(2026, 1, 2), moment) + by).time().isoformat()


MEMBER = "MEMBER"
_TYPE, _PLACE = "resource.type", "resource.compartment.id"
# Every resource has them.
_ALWAYS = (_TYPE, _PLACE, "resource.id")

_Members = Mapping[str, tuple[Condition, ...]]


def members_by_side(sides: Sequence[_Members], places: Places) -> Iterator[tuple[int, Ability]]:
    """The members of each dynamic group, by side. A wider matching rule adds members."""
    for name in dict.fromkeys(name for members in sides for name in members):
        rules = [members.get(name, ()) for members in sides]
        tried = {
            variable: tuple(one for one in options if one is not None or variable not in _ALWAYS)
            for variable, options in values_to_test(rule for side in rules for rule in side).items()
        }
        tests = [[compile_condition(rule) for rule in side] for side in rules]
        for circumstances in combine_circumstances(tried):
            given = {variable: value for variable, value in circumstances.items() if value is not None}
            for number, side in enumerate(tests):
                if any(test(given) for test in side):
                    yield number, Ability(_members_in_words(circumstances, places), MEMBER, f"dynamic group {name}")


def _members_in_words(circumstances: Circumstances, places: Places) -> str:
    """The members in words, such as `job runs in the stack's compartment`."""
    kind, compartment = circumstances.get(_TYPE) or OTHER, circumstances.get(_PLACE) or OTHER
    members = "all resources"
    if _TYPE in circumstances:
        known = table("oci_review")["members"]
        members = known.get(kind, kind) if kind != OTHER else "resources of any other type"
    if _PLACE in circumstances:
        names = {ocid.lower(): name for ocid, name in places.names.items()}
        named = names.get(compartment, f"compartment {compartment}")
        members += f" in {named if compartment != OTHER else 'any other compartment'}"
    rest = {name: value for name, value in circumstances.items() if name not in (_TYPE, _PLACE)}
    return described_resource(members, rest)
