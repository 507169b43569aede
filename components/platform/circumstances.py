# SPDX-License-Identifier: Apache-2.0
"""The circumstances with which conditional statements are evaluated: every value that conditions name, another value,
and none.

A review compares statements by evaluating them with sample values. The values that either side names are enough to find
differences: all values that neither side names give the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

# Marks values that no condition names. No name in a cloud has this character.
OTHER = "§"
# The most combinations. If there are more, only each variable and each pair of variables varies.
MOST = 512
_WHERE, _AND, _IS = " where ", " and ", " is "
_ANOTHER, _NONE = "something else", "not given"

# Variable -> its value; None: the request has no such variable.
Circumstances = Mapping[str, str | None]


def candidate_values(named: Iterable[str]) -> tuple[str | None, ...]:
    """Each value that is named, one that is not, and None."""
    return (*sorted(set(named)), OTHER, None)


def texts_fitting_pattern(pattern: str, patterns: Iterable[str]) -> Iterator[str]:
    """Texts that match a pattern with `*`: if possible one that matches no other pattern, and for each other pattern
    one that matches both."""
    yield pattern.replace("*", OTHER)
    for other in patterns:
        if other != pattern:
            yield pattern.replace("*", other.replace("*", OTHER), 1).replace("*", OTHER)


def combine_circumstances(values: Mapping[str, Sequence[str | None]]) -> Iterator[Circumstances]:
    """All combinations, unless there are too many."""
    names = sorted(values)
    number = 1
    for name in names:
        number *= len(values[name])
    if number <= MOST:
        yield from (dict(zip(names, row, strict=True)) for row in product(*(values[name] for name in names)))
        return
    # Most conditions need one value for each variable, and most differences are in one or two variables.
    for turn in range(max(map(len, values.values()))):
        whole = {name: values[name][turn % len(values[name])] for name in names}
        yield whole
        for name in names:
            yield from ({**whole, name: value} for value in values[name])


def settled_variables(
    outcomes: Iterable[tuple[Circumstances, object]], values: Mapping[str, Sequence[str | None]]
) -> set[str]:
    """The variables that do not influence the outcome."""
    every, found = list(outcomes), set()
    for name, options in values.items():
        groups: dict[tuple[tuple[str, str | None], ...], list[object]] = {}
        for circumstances, outcome in every:
            rest = tuple((key, value) for key, value in circumstances.items() if key != name)
            groups.setdefault(rest, []).append(outcome)
        if all(len(rows) >= len(options) and all(row == rows[0] for row in rows) for rows in groups.values()):
            found.add(name)
    return found


def described_resource(resource: str, circumstances: Circumstances) -> str:
    """A resource with its circumstances, such as `instances where the tag stack is vision-dev`."""
    parts = [f"{name}{_IS}{_value_text(value)}" for name, value in sorted(circumstances.items())]
    return resource + (_WHERE + _AND.join(parts) if parts else "")


def _value_text(value: str | None) -> str:
    return _NONE if value is None else value.replace(OTHER, "…") if value != OTHER else _ANOTHER


def split_circumstances(resource: str) -> tuple[str, str]:
    """Splits a described resource into the resource and its circumstances."""
    what, where, circumstances = resource.partition(_WHERE)
    return what, circumstances if where else ""


def merged_circumstances(circumstances: Iterable[str]) -> str:
    """Several circumstances of one resource in words, grouped by variable."""
    rows = sorted(set(circumstances))
    by_name: dict[str, list[str]] = {}
    for row in rows:
        name, _, value = row.partition(_IS)
        if _AND in row:
            return f"{_WHERE}{rows[0]}" + (f", or in {len(rows) - 1} other cases" if len(rows) > 1 else "")
        by_name.setdefault(name, []).append(value)
    for values in by_name.values():
        values.sort(key=lambda value: (value == _NONE, value == _ANOTHER, value))
    alternatives = [f"{name}{_IS}{' or '.join(values)}" for name, values in by_name.items() if name]
    return _WHERE + " or ".join(alternatives) if alternatives else ""
