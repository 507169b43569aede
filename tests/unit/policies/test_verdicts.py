# SPDX-License-Identifier: Apache-2.0
"""Verdicts on parts are combined correctly, and an unknown value never passes."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

from policies.rule import (
    PASS,
    NotKnownError,
    PolicyVerdict,
    Unknown,
    attempt_verdict,
    fail_because,
    unknown_because,
    verdict_of_either,
    verdict_on_every,
)

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
    verdict = attempt_verdict(lambda value: PASS if value else fail_because("no"), Unknown("a.b[0]"))
    assert verdict == unknown_because("`a.b[0]` is not known yet")


@pytest.mark.parametrize(
    ("parts", "outcome"),
    [
        ([], "pass"),
        ([PASS, PASS], "pass"),
        ([PASS, unknown_because("x")], "unknown"),
        ([unknown_because("x"), fail_because("y"), PASS], "fail"),
    ],
)
def test_the_worst_verdict_of_several_is_taken(parts: list[PolicyVerdict], outcome: str) -> None:
    assert verdict_on_every(lambda part: part, parts).outcome == outcome


def test_every_failure_is_reported_once() -> None:
    assert (
        verdict_on_every(lambda part: part, [fail_because("a"), fail_because("b"), fail_because("a")]).because == "a; b"
    )


@pytest.mark.parametrize(
    ("parts", "outcome"),
    [
        ([fail_because("a"), PASS], "pass"),
        ([unknown_because("a"), PASS], "pass"),
        ([fail_because("a"), unknown_because("b")], "unknown"),
        ([fail_because("a"), fail_because("b")], "fail"),
    ],
)
def test_one_pass_is_enough_for_either(parts: list[PolicyVerdict], outcome: str) -> None:
    assert verdict_of_either(*(lambda part=part: part for part in parts)).outcome == outcome
