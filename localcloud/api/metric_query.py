# SPDX-License-Identifier: Apache-2.0
"""The part of the Monitoring query language that looks at metrics, alarms left aside:
`Name[1m]{key = "value", key =~ "a*|b*"}.groupBy(key).mean()`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from localcloud.api.errors import ApiError

_QUERY = re.compile(
    r"""\s*([A-Za-z][\w.$-]*)\s*\[\s*(\d{1,4})\s*([mhd])\s*\]\s*(?:\{([^{}]*)\})?"""
    r"""\s*(?:\.\s*(groupBy|grouping)\s*\(([^()]*)\))?\s*\.\s*(\w+)\s*\(\s*\)\s*"""
)
_CONDITION = re.compile(r"""\s*([\w.$-]+)\s*(=~|!=|=)\s*"([^"]*)"\s*""")
_SECONDS = {"m": 60, "h": 3600, "d": 86400}
_LONGEST = 86400
# A point: when, its value, and how often it occurred.
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
    """What a dimension must be, or must not."""

    key: str
    operator: str
    value: str

    def holds(self, dimensions: Mapping[str, str]) -> bool:
        found = dimensions.get(self.key)
        if self.operator == "!=":
            return found != self.value
        if found is None or self.operator == "=":
            return found == self.value
        return any(fnmatchcase(found, re.sub(r"([\[\]?])", r"[\1]", choice)) for choice in self.value.split("|"))


@dataclass(frozen=True)
class Query:
    """`group_by` absent: every stream by itself; empty: all streams as one."""

    name: str
    interval: str
    seconds: int
    conditions: tuple[Condition, ...]
    group_by: tuple[str, ...] | None
    statistic: str

    def group_of(self, dimensions: Mapping[str, str]) -> dict[str, str]:
        """The dimensions that are left of a stream's."""
        keys = dimensions if self.group_by is None else self.group_by
        return {key: dimensions[key] for key in keys if key in dimensions}

    def aggregate(self, points: Sequence[Point]) -> list[tuple[float, float]]:
        """(start of the interval, value) of every interval that has points, oldest first."""
        intervals: dict[float, list[Point]] = {}
        for point in points:
            intervals.setdefault(point[0] // self.seconds * self.seconds, []).append(point)
        return [(start, STATISTICS[self.statistic](intervals[start])) for start in sorted(intervals)]


def parse(text: str) -> Query:
    found = _QUERY.fullmatch(text)
    if found is None:
        raise _unreadable(text, 'the local cloud understands Name[1m]{key = "value"}.groupBy(key).mean()')
    name, number, unit, conditions, grouped, keys, statistic = found.groups()
    if statistic not in STATISTICS:
        raise _unreadable(text, f"unknown statistic {statistic}: one of {', '.join(STATISTICS)}")
    seconds = int(number) * _SECONDS[unit]
    if not 60 <= seconds <= _LONGEST:
        raise _unreadable(text, "an interval is from 1m to 1d")
    group_by = tuple(key.strip() for key in keys.split(",") if key.strip()) if grouped == "groupBy" else ()
    return Query(
        name, f"{number}{unit}", seconds, _conditions(conditions or "", text), group_by if grouped else None, statistic
    )


def _conditions(text: str, whole: str) -> tuple[Condition, ...]:
    found, position = [], 0
    while position < len(text.rstrip()):
        match = _CONDITION.match(text, position)
        if match is None:
            raise _unreadable(whole, f"cannot read the dimensions at {text[position:][:40]!r}")
        found.append(Condition(*match.groups()))
        position = match.end()
        if position < len(text) and text[position] == ",":
            position += 1
        elif position < len(text):
            raise _unreadable(whole, f"a comma is missing at {text[position:][:40]!r}")
    return tuple(found)


def _unreadable(text: str, why: str) -> ApiError:
    return ApiError(400, "InvalidParameter", f"The query cannot be read: {why} (in {text[:200]!r})")
