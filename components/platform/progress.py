# SPDX-License-Identifier: Apache-2.0
"""The progress lines of training scripts, as numbers over time. Scripts are not trusted, so every size has a limit.

The local cloud's console and `trainyard runs watch` both draw these numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from catalog.tables import table

T = TypeVar("T")
# Points kept per rank.
MOST_POINTS = 240
MOST_METRICS = 8
_LONGEST_NAME = 60
# Keys read per line.
_MOST_KEYS = 200
# The launcher's texts for numbers that JSON does not have.
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})


@dataclass(frozen=True, slots=True)
class ProgressPoint:
    """One line of progress. A metric is None if the script wrote no finite number; its curve then has a gap."""

    moment: float
    step: float | None = None
    total: float | None = None
    metrics: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def content(self) -> tuple[Any, ...]:
        """Everything but the time, as JSON values."""
        return self.step, self.total, dict(self.metrics)

    def written(self) -> str:
        return json.dumps(self.content, separators=(",", ":"))


def numbers_in(line: Any) -> dict[str, float | None]:
    """The numbers of a line, by name. None for a number that is not finite."""
    found: dict[str, float | None] = {}
    for key, value in list((line if isinstance(line, Mapping) else {"progress": line}).items())[:_MOST_KEYS]:
        number = _finite_number(value)
        if number is not None or (isinstance(value, str) and value in _NOT_FINITE):
            found[str(key)[:_LONGEST_NAME]] = number
    return found


def read_point(moment: float, line: Any) -> ProgressPoint | None:
    """The point of a line. None if the line has no numbers."""
    values = numbers_in(line)
    step, total = _step_and_total(values)
    counts = {name for row in table("progress")["count"] for name in (row["name"], *row["totals"])}
    names = sorted(values.keys() - counts, key=_importance_of_metrics(list(values)))
    point = ProgressPoint(moment, step, total, {name: values[name] for name in names[:MOST_METRICS]})
    return point if point.step is not None or point.metrics else None


def written_point(moment: float, text: str) -> ProgressPoint:
    """The inverse of `ProgressPoint.written`."""
    step, total, metrics = json.loads(text)
    return ProgressPoint(moment, step, total, metrics)


def metric_names(points: Sequence[ProgressPoint]) -> list[str]:
    """The metrics of these points, the most important first. A metric that was never a number is left out."""
    seen = {name: None for point in points for name, value in point.metrics.items() if value is not None}
    return sorted(seen, key=_importance_of_metrics(list(seen)))[:MOST_METRICS]


def highest_is_best(metric: str) -> bool:
    """Whether higher values of the metric are better, by words in its name such as `accuracy`. Lower is better for
    unknown names."""
    words = re.split(r"[^a-z0-9]+", metric.lower())
    return not set(words).isdisjoint(table("progress")["metric"]["highest"])


def thin_points(points: Sequence[T], most: int) -> list[T]:
    """At most `most` points, evenly spaced, always with the first and the last."""
    if len(points) <= most:
        return list(points)
    apart = (len(points) - 1) / (most - 1)
    return [points[round(number * apart)] for number in range(most)]


def crowded_point(moments: Sequence[float]) -> int | None:
    """The index of the point to drop when a rank has too many: the one whose neighbours are closest together.

    So the points stay evenly spread over the run. The first and the last always stay.
    """
    if len(moments) <= MOST_POINTS:
        return None
    return min(range(1, len(moments) - 1), key=lambda place: moments[place + 1] - moments[place - 1])


def _finite_number(value: Any) -> float | None:
    if type(value) not in (int, float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _step_and_total(values: Mapping[str, float | None]) -> tuple[float | None, float | None]:
    for row in table("progress")["count"]:
        step = values.get(row["name"])
        if step is not None:
            totals = (values.get(name) for name in row["totals"])
            return step, next((total for total in totals if total is not None and total > 0), None)
    return None, None


def _importance_of_metrics(order: list[str]) -> Any:
    first: list[str] = table("progress")["metric"]["first"]
    places = {name: place for place, name in enumerate([*first, *(name for name in order if name not in first)])}
    return lambda name: places[name]
