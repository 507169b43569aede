# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.plan.model import expand_references, plan_references, stack_tags
from schemas.name_suggestions import REFERENCES
from tests.support.samples import stack


def test_physical_names_say_team_environment_and_what() -> None:
    assert stack().physical("train", "base") == "vision-dev-train-base"


def test_tags_of_the_team_cannot_take_the_place_of_ours() -> None:
    made = stack_tags(stack(tags={"cost-center": "4711", "team": "somebody else"}))
    assert made["cost-center"] == "4711"
    assert made["team"] == "vision"
    assert made["stack"] == "vision-dev"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${team}/${job}:1", "vision/train:1"),
        ("${registry}:1", "${registry}:1"),
        ("${secret.token}", "${secret.token}"),
        ("$team {team} $${", "$team {team} $${"),
    ],
)
def test_references_the_plan_knows_are_filled_in_and_others_left(text: str, expected: str) -> None:
    assert expand_references(text, plan_references(stack(), "train", "base")) == expected


@given(st.text())
def test_text_without_references_stays_as_it_is(text: str) -> None:
    assert expand_references(text, {}) == text


def test_the_plan_and_the_checks_know_the_same_references() -> None:
    assert {*plan_references(stack(), "train", "base"), "registry", "bucket"} == set(REFERENCES)
