# SPDX-License-Identifier: Apache-2.0
"""No attempt of the list gets past the pack."""

from __future__ import annotations

from datetime import date

import pytest

from policies.settings import read_rule_settings
from policies.verdicts import PolicyContext, judge_all
from tests.support.policy_attempts import PolicyAttempt, policy_attempts


@pytest.mark.parametrize("attempt", [*policy_attempts()], ids=lambda attempt: attempt.title.replace(" ", "_"))
def test_the_rule_refuses_the_attempt(attempt: PolicyAttempt) -> None:
    terms = PolicyContext(date(2026, 11, 26), attempt.environment, read_rule_settings(attempt.settings))
    failed = {result.rule for result in judge_all(attempt.resources, terms) if result.outcome == "fail"}
    assert attempt.rule in failed
