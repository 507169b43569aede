# SPDX-License-Identifier: Apache-2.0
"""Values with which conditions of statements and matching rules are evaluated: enough to distinguish any two of
them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta

from components.oci.iam.evaluate import instant, time_of_day
from components.oci.iam.statement import AllOf, AnyOf, Comparison, Condition, Exists, Pattern, Text, Variable
from components.platform.circumstances import candidates, fitting

_MOMENT, _MINUTE = timedelta(seconds=1), timedelta(minutes=1)
PERMISSION = "request.permission"


def comparisons(condition: Condition | None) -> Iterator[Comparison | Exists]:
    match condition:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from comparisons(part)
        case Comparison() | Exists():
            yield condition


def values(conditions: Iterable[Condition | None]) -> dict[str, tuple[str | None, ...]]:
    """The values to test for each variable: those that conditions compare with it, another value, and none."""
    named: dict[str, set[str]] = defaultdict(set)
    patterns: dict[str, set[str]] = defaultdict(set)
    alike: list[tuple[str, str]] = []
    for one in (leaf for condition in conditions for leaf in comparisons(condition)):
        name = one.variable.lower()
        named[name] |= set()
        if isinstance(one, Exists):
            continue
        named[name].update(_moments(one))
        for value in one.values:
            match value:
                case Text(text):
                    named[name].add(text.lower())
                case Pattern(text):
                    patterns[name].add(text.lower())
                case Variable(other):
                    alike.append((name, other.lower()))
    for name, texts in patterns.items():
        for text in sorted(texts):
            named[name].update(fitting(text, sorted(texts)))
    return {name: candidates(texts) for name, texts in _shared(named, alike).items()}


def _shared(named: Mapping[str, set[str]], alike: list[tuple[str, str]]) -> dict[str, set[str]]:
    """If two variables are compared with each other, both get the values of either, so that they can be equal."""
    found = {name: set(texts) for name, texts in named.items()}
    for one, other in alike:
        both = found.get(one, set()) | found.get(other, set()) | {"the same"}
        found[one] = found[other] = both
    return found


def _moments(one: Comparison) -> Iterator[str]:
    """Just before and just after each limit in time."""
    texts = [value.text for value in one.values if isinstance(value, Text)]
    if one.operator in ("before", "after"):
        for limit in filter(None, map(instant, texts)):
            yield from ((limit - _MOMENT).isoformat(), (limit + _MOMENT).isoformat())
    elif one.operator == "between":
        for limit_of_day in filter(None, map(time_of_day, texts)):
            yield from (_moved(limit_of_day, -_MINUTE), _moved(limit_of_day, _MINUTE))


def _moved(moment: time, by: timedelta) -> str:
    return (datetime.combine(date(2026, 1, 2), moment) + by).time().isoformat()
