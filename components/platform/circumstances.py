# SPDX-License-Identifier: Apache-2.0
"""The circumstances in which a conditional statement may hold: every value that conditions name, any other, and none.

Statements are compared by evaluation, so a review needs values to evaluate them with. What two sides name together is
enough to tell them apart: a value that neither names is as good as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

# In values that no condition names. A character that no name of a cloud has.
OTHER = "§"
# More combinations than this are not tried: each circumstance then varies alone, and so does each pair of them.
MOST = 512
_WHERE, _AND, _IS = " where ", " and ", " is "
_ANOTHER, _NONE = "something else", "not given"

# Variable -> its value; None: the request has no such variable.
Circumstances = Mapping[str, str | None]


def candidates(named: Iterable[str]) -> tuple[str | None, ...]:
    """Each value that is named, one that is not, and none at all."""
    return (*sorted(set(named)), OTHER, None)


def fitting(pattern: str, patterns: Iterable[str]) -> Iterator[str]:
    """Texts that fit a pattern with `*`: one that fits no other if it can, and one for each other that fits both."""
    yield pattern.replace("*", OTHER)
    for other in patterns:
        if other != pattern:
            yield pattern.replace("*", other.replace("*", OTHER), 1).replace("*", OTHER)


def combinations(values: Mapping[str, Sequence[str | None]]) -> Iterator[Circumstances]:
    """All of them, unless they are too many."""
    names = sorted(values)
    number = 1
    for name in names:
        number *= len(values[name])
    if number <= MOST:
        yield from (dict(zip(names, row, strict=True)) for row in product(*(values[name] for name in names)))
        return
    # Most conditions want one value of each variable; what differs from that differs in one or two of them.
    for basis in zip(*(_cycled(values[name], max(map(len, values.values()))) for name in names), strict=True):
        whole = dict(zip(names, basis, strict=True))
        yield whole
        for name in names:
            yield from ({**whole, name: value} for value in values[name])


def _cycled(values: Sequence[str | None], length: int) -> list[str | None]:
    return [values[number % len(values)] for number in range(length)]


def settled(outcomes: Iterable[tuple[Circumstances, object]], values: Mapping[str, Sequence[str | None]]) -> set[str]:
    """The variables that decide nothing: whatever they are, the outcome is that of the others."""
    every, found = list(outcomes), set()
    for name, options in values.items():
        groups: dict[tuple[tuple[str, str | None], ...], list[object]] = {}
        for circumstances, outcome in every:
            rest = tuple((key, value) for key, value in circumstances.items() if key != name)
            groups.setdefault(rest, []).append(outcome)
        if all(len(rows) >= len(options) and all(row == rows[0] for row in rows) for rows in groups.values()):
            found.add(name)
    return found


def described(resource: str, circumstances: Circumstances) -> str:
    """`instances where the tag stack is vision-dev`."""
    parts = [f"{name}{_IS}{_shown(value)}" for name, value in sorted(circumstances.items())]
    return resource + (_WHERE + _AND.join(parts) if parts else "")


def _shown(value: str | None) -> str:
    return _NONE if value is None else value.replace(OTHER, "…") if value != OTHER else _ANOTHER


def parted(resource: str) -> tuple[str, str]:
    """A described resource without its circumstances, and these."""
    what, where, circumstances = resource.partition(_WHERE)
    return what, circumstances if where else ""


def merged(circumstances: Iterable[str]) -> str:
    """Several circumstances of one resource in words. Those of one variable stand together."""
    rows = sorted(set(circumstances))
    by_name: dict[str, list[str]] = {}
    for row in rows:
        name, _, value = row.partition(_IS)
        if _AND in row:
            return f"{_WHERE}{rows[0]}" + (f", or in {len(rows) - 1} other cases" if len(rows) > 1 else "")
        by_name.setdefault(name, []).append(value)
    said = [f"{name}{_IS}{_either(values)}" for name, values in by_name.items() if name]
    return _WHERE + " or ".join(said) if said else ""


def _either(values: list[str]) -> str:
    return " or ".join(sorted(values, key=lambda value: (value == _NONE, value == _ANOTHER, value)))
