# SPDX-License-Identifier: Apache-2.0
"""Turns conditions into tests of a request's variables.

If the request lacks a variable, its comparison is false, also with `!=`. Comparisons ignore case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time

from components.oci.iam.statement import (
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    Exists,
    Operator,
    Pattern,
    Text,
    Value,
    Variable,
    fits_pattern,
)

STAMP = "request.utc-timestamp"
MONTH = f"{STAMP}.month-of-year"
DAY = f"{STAMP}.day-of-month"
WEEKDAY = f"{STAMP}.day-of-week"
TIME_OF_DAY = f"{STAMP}.time-of-day"

_CALENDAR: tuple[Operator, ...] = ("=", "!=", "in")
TIME_OPERATORS: Mapping[str, tuple[Operator, ...]] = {
    STAMP: ("before", "after"),
    MONTH: _CALENDAR,
    DAY: _CALENDAR,
    WEEKDAY: _CALENDAR,
    TIME_OF_DAY: ("between",),
}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# A request's variables by name in lower case. A variable has several values if a principal has several groups.
Variables = Mapping[str, str | tuple[str, ...]]
Test = Callable[[Variables], bool]
_Matcher = Callable[[str, Variables], bool]


def parse_instant(text: str) -> datetime | None:
    """Reads an ISO 8601 moment or day in UTC, as OCI writes them. None if the text is neither."""
    try:
        moment = datetime.fromisoformat(text.upper().removesuffix("Z"))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def time_of_day(text: str) -> time | None:
    """Reads a time of the day in UTC. None if the text is not one."""
    try:
        moment = time.fromisoformat(text.upper().removesuffix("Z"))
    except ValueError:
        return None
    return moment if moment.tzinfo is None else None


def _number_to(highest: int) -> Callable[[str], bool]:
    return lambda text: text.isascii() and text.isdigit() and len(text) <= 2 and 1 <= int(text) <= highest


_VALUES: Mapping[str, Callable[[str], bool]] = {
    STAMP: lambda text: parse_instant(text) is not None,
    MONTH: _number_to(12),
    DAY: _number_to(31),
    WEEKDAY: lambda text: text.lower() in _WEEKDAYS,
    TIME_OF_DAY: lambda text: time_of_day(text) is not None,
}


def is_time_value(variable: str, text: str) -> bool:
    """Whether the variable can be compared with the text. Variables that are not times take any text."""
    check = _VALUES.get(variable)
    return check is None or check(text)


def time_variables(moment: datetime) -> dict[str, str]:
    """The time variables of a request at this moment."""
    utc = moment.astimezone(UTC)
    return {
        STAMP: utc.isoformat(),
        MONTH: str(utc.month),
        DAY: str(utc.day),
        WEEKDAY: _WEEKDAYS[utc.weekday()],
        TIME_OF_DAY: utc.time().isoformat(),
    }


def values_of(variables: Variables, name: str) -> tuple[str, ...]:
    """The values of a variable, none if the request does not have it."""
    values = variables.get(name, ())
    return (values,) if isinstance(values, str) else values


def _value_matcher(value: Value) -> _Matcher:
    match value:
        case Text(text):
            lower = text.lower()
            return lambda actual, _: actual.lower() == lower
        case Pattern(text):
            pattern = text.lower()
            return lambda actual, _: fits_pattern(pattern, actual.lower())
        case Variable(name):
            other = name.lower()
            return lambda actual, variables: actual.lower() in (v.lower() for v in values_of(variables, other))


def _is_between(limits: tuple[str, ...]) -> Callable[[str], bool]:
    start, end = map(time_of_day, limits)
    if start is None or end is None:
        return lambda value: False
    first, last = start, end

    def inside(value: str) -> bool:
        moment = time_of_day(value)
        if moment is None:
            return False
        # 17:00 to 01:00 includes midnight.
        return first <= moment <= last if first <= last else moment >= first or moment <= last

    return inside


def _is_before_or_after(operator: Operator, limit: str) -> Callable[[str], bool]:
    bound = parse_instant(limit)
    if bound is None:
        return lambda value: False

    def ordered(value: str) -> bool:
        moment = parse_instant(value)
        if moment is None:
            return False
        return moment < bound if operator == "before" else moment > bound

    return ordered


def _compile_comparison(comparison: Comparison) -> Test:
    name, operator = comparison.variable.lower(), comparison.operator
    if operator in ("before", "after", "between"):
        limits = tuple(value.text for value in comparison.values if isinstance(value, Text))
        test = _is_between(limits) if operator == "between" else _is_before_or_after(operator, limits[0])
        return lambda variables: any(test(value) for value in values_of(variables, name))
    matchers = tuple(_value_matcher(value) for value in comparison.values)

    def equal(variables: Variables) -> bool:
        return any(fits(actual, variables) for actual in values_of(variables, name) for fits in matchers)

    others = tuple(value.name.lower() for value in comparison.values if isinstance(value, Variable))

    def different(variables: Variables) -> bool:
        has_values = values_of(variables, name) and all(values_of(variables, other) for other in others)
        return bool(has_values) and not equal(variables)

    return different if operator == "!=" else equal


def compile_condition(condition: Condition) -> Test:
    """A function that returns whether the condition is true for a request's variables."""
    match condition:
        case Comparison():
            return _compile_comparison(condition)
        case Exists(variable):
            name = variable.lower()
            return lambda variables: bool(values_of(variables, name))
        case AllOf(parts):
            tests = tuple(map(compile_condition, parts))
            return lambda variables: all(test(variables) for test in tests)
        case AnyOf(parts):
            tests = tuple(map(compile_condition, parts))
            return lambda variables: any(test(variables) for test in tests)


def variables_in(condition: Condition) -> frozenset[str]:
    """Every variable of the condition, in lower case."""
    match condition:
        case Comparison(variable, _, values):
            others = {value.name.lower() for value in values if isinstance(value, Variable)}
            return frozenset({variable.lower()} | others)
        case Exists(variable):
            return frozenset({variable.lower()})
        case AllOf(parts) | AnyOf(parts):
            return frozenset().union(*map(variables_in, parts))
