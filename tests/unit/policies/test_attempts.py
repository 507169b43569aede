# SPDX-License-Identifier: Apache-2.0
"""No attempt of the list gets past the pack, and what narrows a statement is believed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from policies.settings import read_rule_settings
from policies.strangers import lets_strangers_in
from policies.verdicts import PolicyContext, judge_all
from tests.support.policy_attempts import NARROW, PolicyAttempt, policy_attempts


@pytest.mark.parametrize("attempt", [*policy_attempts()], ids=lambda attempt: attempt.title.replace(" ", "_"))
def test_the_rule_refuses_the_attempt(attempt: PolicyAttempt) -> None:
    terms = PolicyContext(date(2026, 11, 26), attempt.environment, read_rule_settings(attempt.settings))
    failed = {result.rule for result in judge_all(attempt.resources, terms) if result.outcome == "fail"}
    assert attempt.rule in failed


@pytest.mark.parametrize("condition", NARROW, ids=json.dumps)
def test_a_condition_that_no_stranger_meets_is_believed(condition: Mapping[str, Any]) -> None:
    opened = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Condition": condition}
    assert not lets_strangers_in(opened)
