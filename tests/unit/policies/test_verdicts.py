# SPDX-License-Identifier: Apache-2.0
"""Verdicts on parts are combined correctly, and an unknown value never passes."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

from policies.rule import PASS, NotKnownError, PolicyVerdict, Unknown, attempt, either, every, fail, unknown

USES: dict[str, Callable[[Any], object]] = {
    "truth": bool,
    "equality": lambda value: value == "Enabled",
    "order": lambda value: value < 3,
    "inside": lambda value: "6" in value,
    "items": list,
    "item": lambda value: value["min"],
    "attribute": lambda value: value.get("min"),
    "text": str,
    "format": lambda value: f"{value}",
    "number": int,
    "length": len,
    "key": lambda value: {value: 1},
    "membership": lambda value: value in ("6", "all"),
    "identity by operator": lambda value: operator.ne(value, "6"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_any_use_of_an_unknown_value_is_refused(use: Callable[[Any], object]) -> None:
    with pytest.raises(NotKnownError, match="versioning"):
        use(Unknown("versioning"))


def test_refusal_becomes_the_verdict_and_names_the_value() -> None:
    verdict = attempt(lambda value: PASS if value else fail("no"), Unknown("a.b[0]"))
    assert verdict == unknown("`a.b[0]` is not known yet")


@pytest.mark.parametrize(
    ("parts", "outcome"),
    [
        ([], "pass"),
        ([PASS, PASS], "pass"),
        ([PASS, unknown("x")], "unknown"),
        ([unknown("x"), fail("y"), PASS], "fail"),
    ],
)
def test_the_worst_verdict_of_several_is_taken(parts: list[PolicyVerdict], outcome: str) -> None:
    assert every(lambda part: part, parts).outcome == outcome


def test_every_failure_is_reported_once() -> None:
    assert every(lambda part: part, [fail("a"), fail("b"), fail("a")]).because == "a; b"


@pytest.mark.parametrize(
    ("parts", "outcome"),
    [
        ([fail("a"), PASS], "pass"),
        ([unknown("a"), PASS], "pass"),
        ([fail("a"), unknown("b")], "unknown"),
        ([fail("a"), fail("b")], "fail"),
    ],
)
def test_one_pass_is_enough_for_either(parts: list[PolicyVerdict], outcome: str) -> None:
    assert either(*(lambda part=part: part for part in parts)).outcome == outcome
