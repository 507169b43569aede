# SPDX-License-Identifier: Apache-2.0
"""The part of the Monitoring query language that reads metrics, without alarms:
`Name[1m]{key = "value", key =~ "a*|b*"}.groupBy(key).mean()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from components.oci.iam.statement import fits_pattern
from localcloud.oci.log_query import Reader
from localcloud.server.http import whole_number

_SECONDS = {"m": 60, "h": 3600, "d": 86400}
_LONGEST = 86400
_MOST_CONDITIONS = 100
# A point: its time, its value, and how often it occurred.
Point = tuple[float, float, int]
Statistic = Callable[[Sequence[Point]], float]
STATISTICS: Mapping[str, Statistic] = {
    "count": lambda points: float(sum(count for _, _, count in points)),
    "first": lambda points: min(points)[1],
    "last": lambda points: max(points)[1],
    "max": lambda points: max(value for _, value, _ in points),
    "mean": lambda points: sum(value * count for _, value, count in points) / sum(count for _, _, count in points),
    "min": lambda points: min(value for _, value, _ in points),
    "sum": lambda points: sum(value * count for _, value, count in points),
}


@dataclass(frozen=True)
class Condition:
    """A condition on one dimension."""

    key: str
    operator: str
    value: str

    def holds(self, dimensions: Mapping[str, str]) -> bool:
        actual = dimensions.get(self.key)
        if self.operator == "!=":
            return actual != self.value
        if actual is None or self.operator == "=":
            return actual == self.value
        return any(fits_pattern(choice, actual) for choice in self.value.split("|"))


@dataclass(frozen=True)
class MetricQuery:
    """A parsed query. `group_by` None: streams stay separate; empty: all streams are joined into one."""

    name: str
    interval: str
    seconds: int
    conditions: tuple[Condition, ...]
    group_by: tuple[str, ...] | None
    statistic: str

    def group_of(self, dimensions: Mapping[str, str]) -> dict[str, str]:
        """The dimensions of a stream that the grouping keeps."""
        keys = dimensions if self.group_by is None else self.group_by
        return {key: dimensions[key] for key in keys if key in dimensions}

    def aggregate(self, points: Sequence[Point]) -> list[tuple[float, float]]:
        """(start of the interval, value) of every interval that has points, oldest first."""
        intervals: dict[float, list[Point]] = {}
        for point in points:
            intervals.setdefault(point[0] // self.seconds * self.seconds, []).append(point)
        return [(start, STATISTICS[self.statistic](intervals[start])) for start in sorted(intervals)]


def parse_metric_query(text: str) -> MetricQuery:
    reader = Reader(text, "The query")
    name = reader.take("word", "the name of a metric")
    if not (name[0].isascii() and name[0].isalpha()):
        raise reader.unreadable(f"{name[:40]!r} is not the name of a metric")
    reader.expect_sign("[")
    interval, seconds = _parse_interval(reader)
    reader.expect_sign("]")
    conditions: list[Condition] = []
    in_braces = reader.accept_sign("{")
    while in_braces and not reader.accept_sign("}"):
        if conditions:
            reader.expect_sign(",")
        key = reader.take("word", "a dimension")
        operator = reader.accept_sign("=", "!=", "=~")
        if not operator:
            raise reader.expected("=, != or =~")
        conditions.append(Condition(key, operator, reader.take("text", "a quoted value")))
        if len(conditions) > _MOST_CONDITIONS:
            raise reader.unreadable(f"it has more than {_MOST_CONDITIONS} dimensions")
    group_by: tuple[str, ...] | None = None
    function = _parse_function_name(reader)
    if function in ("groupBy", "grouping"):
        keys: list[str] = []
        reader.expect_sign("(")
        while not reader.accept_sign(")"):
            if keys:
                reader.expect_sign(",")
            keys.append(reader.take("word", "a dimension"))
        group_by = tuple(keys) if function == "groupBy" else ()
        function = _parse_function_name(reader)
    if function not in STATISTICS:
        raise reader.unreadable(f"unknown statistic {function[:40]}: one of {', '.join(STATISTICS)}")
    reader.expect_sign("(")
    reader.expect_sign(")")
    if reader.token:
        raise reader.unreadable('the local cloud supports the form Name[1m]{key = "value"}.groupBy(key).mean()')
    return MetricQuery(name, interval, seconds, tuple(conditions), group_by, function)


def _parse_interval(reader: Reader) -> tuple[str, int]:
    """The interval as text and in seconds."""
    text = reader.take("word", "an interval such as 1m")
    number, unit = text[:-1], text[-1]
    if not unit.strip() or unit not in _SECONDS:
        number, unit = text, reader.take("word", "the unit of the interval")
    count = whole_number(number)
    if unit not in _SECONDS or count is None:
        raise reader.unreadable(f"{text[:40]!r} is not an interval such as 1m")
    seconds = count * _SECONDS[unit]
    if not 60 <= seconds <= _LONGEST:
        raise reader.unreadable("an interval is from 1m to 1d")
    return f"{count}{unit}", seconds


def _parse_function_name(reader: Reader) -> str:
    """The function's name after a dot. There may be space between them."""
    text = reader.take("word", "a statistic")
    if not text.startswith("."):
        raise reader.unreadable(f"expected . before {text[:40]!r}")
    return text[1:] or reader.take("word", "a statistic")
