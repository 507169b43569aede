# SPDX-License-Identifier: Apache-2.0
"""Walks over nested values."""

from __future__ import annotations

from catalog.nested import map_values, walk_places, walk_texts, walk_values

VALUE = {"a": [1, {"b": "two"}], "c": "three"}


def test_every_part_has_its_place_and_comes_before_what_is_in_it() -> None:
    assert list(walk_places(VALUE)) == [
        ((), VALUE),
        (("a",), [1, {"b": "two"}]),
        (("a", 0), 1),
        (("a", 1), {"b": "two"}),
        (("a", 1, "b"), "two"),
        (("c",), "three"),
    ]
    assert list(walk_values(VALUE)) == [part for _, part in walk_places(VALUE)]


def test_texts_are_values_and_not_keys() -> None:
    assert list(walk_texts(VALUE)) == ["two", "three"]


def test_a_changed_part_is_not_looked_into() -> None:
    assert map_values(VALUE, lambda part: [part] if part == {"b": "two"} else part) == {
        "a": [1, [{"b": "two"}]],
        "c": "three",
    }


def test_the_value_itself_is_a_part_and_stays_as_it_was() -> None:
    assert map_values("three", lambda part: 3) == 3
    assert map_values(VALUE, lambda part: part + 1 if isinstance(part, int) else part)["a"][0] == 2
    assert VALUE["a"][0] == 1
