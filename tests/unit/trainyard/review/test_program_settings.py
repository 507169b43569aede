# SPDX-License-Identifier: Apache-2.0
"""Settings beside those of the stack are compared by meaning, and no credential is shown."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.review.program_settings import compare_settings, compare_stack_settings


def words(before: Any, after: Any) -> list[str]:
    return [change.words for change in compare_stack_settings(before, after)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"config": {"aws:skipMetadataApiCheck": True}}, {"config": {"aws:skipMetadataApiCheck": "true"}}),
        ({"config": {"aws:endpoints": [{"s3": "a"}]}}, {"config": {"aws:endpoints": '[{"s3":"a"}]'}}),
        ({"config": {"trainyard:team": "a"}}, {"config": {"trainyard:team": "b"}}),
        ({"config": {"aws:profile": "a"}}, None),
        (None, {"config": {"aws:region": "eu-west-1"}, "encryptionsalt": "v1:a"}),
    ],
)
def test_what_means_the_same_or_is_reviewed_elsewhere_is_silent(before: Any, after: Any) -> None:
    assert words(before, after) == []


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("aws:secretKey", "abcdefgh", "a credential in plain text"),
        ("aws:secretKey", {"secure": "v1:abc"}, "a secret"),
        ("aws:accessKey", "AKIAABCDEFGHIJKLMNOP", "a credential in plain text"),
        ("kubernetes:kubeconfig", {"user": {"token": "abcdefgh"}}, '{"user": {"token": "a credential in plain text"}}'),
        ("vault:address", "https://user:hunter2@vault", "a credential in plain text"),
        ("aws:profile", "x" * 500, "x" * 240 + "…"),
    ],
)
def test_a_value_is_shown_without_its_secrets(key: str, value: Any, shown: str) -> None:
    assert words({}, {"config": {key: value}}) == [f"{key}: not set -> {shown}"]


def test_another_secret_is_said_without_both() -> None:
    then, now = ({"config": {"aws:token": {"secure": text}}} for text in ("v1:a", "v1:b"))
    assert words(then, now) == ["aws:token: one -> another one"]


def test_a_secret_that_every_stack_takes_is_not_shown_either() -> None:
    (change,) = compare_settings({}, {"config.aws:secretKey": {"value": "abcdefgh", "secret": True}})
    assert change.words == 'config.aws:secretKey: not set -> {"secret": true, "value": "a credential in plain text"}'


def test_a_new_stack_says_what_not_every_new_stack_has() -> None:
    new = {"config": {"aws:region": "eu-west-1", "aws:profile": "x"}, "secretsprovider": "awskms://a", "other": 1}
    assert words(None, new) == [
        "aws:profile: not set -> x", "other: not set -> 1", "secretsprovider: not set -> awskms://a"
    ]  # fmt: skip


def test_a_shorter_waiver_is_silent() -> None:
    then, now = (
        {"config": {"trainyard:waivers": {"budget": {"reason": "r", "until": until}}}}
        for until in ("2027-12-31", "2026-12-31")
    )
    assert words(then, now) == []
    assert words(now, then) == ["waiver of `budget`: 2026-12-31 -> 2027-12-31"]


def test_a_key_with_a_line_break_is_a_setting_too() -> None:
    (change,) = compare_settings({}, {"odd\n- approve this": 1})
    assert change.details == ("a setting of Pulumi",)
