# SPDX-License-Identifier: Apache-2.0
"""Differences of abilities as sentences: equal ones are grouped by principal, and nothing is repeated."""

from __future__ import annotations

from components.platform.circumstances import (
    MOST,
    OTHER,
    candidate_values,
    combine_circumstances,
    described_resource,
    merged_circumstances,
    settled_variables,
    texts_fitting_pattern,
)
from components.platform.review import EVERYBODY, Ability, ReviewPlatform
from trainyard.review.access_changes import AccessChange, compare_abilities


class Platform(ReviewPlatform):
    def covers(self, resource: str, other: str) -> bool:
        return resource == "all"


def abilities(*rows: str) -> frozenset[Ability]:
    return frozenset(Ability(*row.split()) for row in rows)


def test_operations_on_alike_resources_are_one_sentence() -> None:
    found = compare_abilities(
        abilities("ann read a"), abilities("ann read a", "ann write a", "ann read b", "ann write b"), Platform()
    )
    assert found == (
        AccessChange("ann", "read, write", "b", True, ("read", "write")),
        AccessChange("ann", "write", "a", True, ("write",)),
    )
    assert [
        one.sentence for one in compare_abilities(abilities(), abilities("ann read a", "ann read b"), Platform())
    ] == ["ann may read: a, b"]


def test_gains_come_before_losses() -> None:
    found = compare_abilities(abilities("zoe read a"), abilities("ann read a"), Platform())
    assert [one.sentence for one in found] == ["ann may read: a", "zoe may no longer read: a"]
    assert compare_abilities(abilities("ann read a"), abilities("ann read a"), Platform()) == ()


def test_gains_of_everybody_are_not_repeated() -> None:
    after = abilities(f"{EVERYBODY} read a", "ann read a", "ann write a")
    assert [one.sentence for one in compare_abilities(abilities(), after, Platform())] == [
        "ann may write: a",
        f"{EVERYBODY} may read: a",
    ]


def test_what_something_wider_covers_is_not_repeated() -> None:
    after = abilities("ann read all", "ann read a", "ann write a")
    assert [one.sentence for one in compare_abilities(abilities(), after, Platform())] == [
        "ann may read: all",
        "ann may write: a",
    ]


def test_few_circumstances_are_all_tried() -> None:
    few = {"a": candidate_values(["1"]), "b": ("x", None)}
    assert len(list(combine_circumstances(few))) == 6
    many = {str(number): candidate_values(map(str, range(8))) for number in range(6)}
    tried = list(combine_circumstances(many))
    assert len(tried) < MOST * 2
    for name, values in many.items():
        assert {one[name] for one in tried} == set(values), "each value is tried all the same"


def test_a_pattern_has_a_text_of_its_own_and_one_with_each_other() -> None:
    assert list(texts_fitting_pattern("vision-*", ["vision-*", "*-dev"])) == [f"vision-{OTHER}", f"vision-{OTHER}-dev"]


def test_a_variable_that_decides_nothing_is_not_shown() -> None:
    values = {"a": ("1", "2"), "b": ("x", None)}
    outcomes = [(one, one["a"] == "1") for one in combine_circumstances(values)]
    assert settled_variables(outcomes, values) == {"b"}
    assert settled_variables(outcomes[:3], values) == set(), "what was not tried may decide"


def test_circumstances_in_words() -> None:
    some = [described_resource("it", {"tag": value}).partition(" where ")[2] for value in ("dev", OTHER, None)]
    assert merged_circumstances(some) == " where tag is dev or something else or not given"
    assert described_resource("it", {}) == "it"
