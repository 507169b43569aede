# SPDX-License-Identifier: Apache-2.0
"""Which resources belong to the dynamic groups of snapshots. A wider matching rule adds members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from catalog.tables import table
from components.oci.iam.evaluate import compile_condition
from components.oci.iam.statement import Condition
from components.oci.review.access import Places
from components.oci.review.conditions import values
from components.platform.circumstances import OTHER, Circumstances, combinations, described
from components.platform.review import Ability

MEMBER = "MEMBER"
_TYPE, _PLACE = "resource.type", "resource.compartment.id"
# Every resource has them.
_ALWAYS = (_TYPE, _PLACE, "resource.id")

_Members = Mapping[str, tuple[Condition, ...]]


def memberships(sides: Sequence[_Members], places: Places) -> Iterator[tuple[int, Ability]]:
    """Who belongs to each group, on which side."""
    for name in dict.fromkeys(name for members in sides for name in members):
        rules = [members.get(name, ()) for members in sides]
        tried = {
            variable: tuple(one for one in options if one is not None or variable not in _ALWAYS)
            for variable, options in values(rule for side in rules for rule in side).items()
        }
        tests = [[compile_condition(rule) for rule in side] for side in rules]
        for circumstances in combinations(tried):
            given = {variable: value for variable, value in circumstances.items() if value is not None}
            for number, side in enumerate(tests):
                if any(test(given) for test in side):
                    yield number, Ability(_words(circumstances, places), MEMBER, f"dynamic group {name}")


def _words(circumstances: Circumstances, places: Places) -> str:
    """The members in words, such as `job runs in the stack's compartment`."""
    rest = {name: value for name, value in circumstances.items() if name not in (_TYPE, _PLACE)}
    return described(f"{_kind(circumstances)}{_place(circumstances, places)}", rest)


def _kind(circumstances: Circumstances) -> str:
    if _TYPE not in circumstances:
        return "all resources"
    kind = circumstances[_TYPE] or OTHER
    return str(table("oci_review")["members"].get(kind, kind)) if kind != OTHER else "resources of any other type"


def _place(circumstances: Circumstances, places: Places) -> str:
    if _PLACE not in circumstances:
        return ""
    place = circumstances[_PLACE] or OTHER
    if place == OTHER:
        return " in any other compartment"
    names = {ocid.lower(): name for ocid, name in places.names.items()}
    return f" in {names.get(place, f'compartment {place}')}"
