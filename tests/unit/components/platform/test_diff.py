# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.platform.values import UNKNOWN, DiffRules, changed_keys, compare_inputs

_RULES = DiffRules(
    replace=frozenset({"name", "code.image", "whole"}),
    computed=frozenset({"tags", "blocks", "filled"}),
    maps=frozenset({"tags"}),
    unordered=frozenset({"rules"}),
    ignored=frozenset({"etag"}),
)


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": ("update", False)}),
        ({}, {"a": 2}, {"a": ("add", False)}),
        ({"a": 1}, {}, {"a": ("delete", False)}),
        ({"a": None}, {}, {}),
        ({"name": "x"}, {"name": "y"}, {"name": ("update", True)}),
        ({"tags": {"x": "1"}}, {}, {}),
        ({"tags": {"x": "1"}}, {"tags": {"x": "2"}}, {"tags.x": ("update", False)}),
        ({"tags": {"a.b": "1"}}, {"tags": {"a.b": "2"}}, {'tags["a.b"]': ("update", False)}),
        ({"tags": {"x": "1", "y": "2"}}, {"tags": {"x": "1"}}, {"tags.y": ("delete", False)}),
        ({"filled": {"x": "1", "y": "2"}}, {"filled": {"x": "1"}}, {}),
        ({"blocks": [1, 2]}, {"blocks": [1]}, {"blocks[1]": ("delete", False)}),
        ({"blocks": [1, 2]}, {}, {}),
        ({"rules": [1, 2]}, {"rules": [2, 1]}, {}),
        ({"rules": [1, 2]}, {"rules": [2]}, {"rules": ("update", False)}),
        ({"list": [1, 2]}, {"list": [2, 1]}, {"list[0]": ("update", False), "list[1]": ("update", False)}),
        ({"whole": [{"x": 1}]}, {"whole": [{"x": 1}, {"x": 2}]}, {"whole[1]": ("add", True)}),
        ({"code": {"image": "1", "cpu": 1}}, {"code": {"image": "1", "cpu": 2}}, {"code.cpu": ("update", False)}),
        ({}, {"code": {"image": "1"}}, {"code": ("add", True)}),
        ({"name": "x"}, {"name": UNKNOWN}, {"name": ("update", True)}),
        ({"etag": 1}, {"etag": 2}, {}),
    ],
)
def test_a_diff_names_each_change_and_whether_it_replaces(old: Any, new: Any, changes: Any) -> None:
    diff = compare_inputs(old, new, _RULES)
    assert {path: (change.kind, change.replaces) for path, change in diff.changes.items()} == changes


_VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
_OBJECTS = st.dictionaries(st.text(min_size=1, max_size=3), _VALUES, max_size=4)


@given(_OBJECTS)
def test_nothing_differs_from_itself(value: dict[str, Any]) -> None:
    assert not compare_inputs(value, value, DiffRules()).changes


@given(_OBJECTS, _OBJECTS)
def test_only_what_differs_is_named(old: dict[str, Any], new: dict[str, Any]) -> None:
    named = set(compare_inputs(old, new, DiffRules()).changes)
    differing = {key for key in {**old, **new} if old.get(key) != new.get(key)}
    assert bool(named) <= bool(differing)


def test_top_level_keys_of_a_diff() -> None:
    diff = compare_inputs({"a": {"b": 1}, "c": [1]}, {"a": {"b": 2}, "c": [2]}, DiffRules())
    assert changed_keys(diff.changes) == {"a", "c"}
