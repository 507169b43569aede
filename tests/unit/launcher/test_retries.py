# SPDX-License-Identifier: Apache-2.0
"""What is retried, how soon, and until when."""

from __future__ import annotations

import pytest

from launcher import exits
from launcher.retries import MAXIMUM_VARIABLE, Retries


@pytest.mark.parametrize(
    ("code", "counted", "count", "again"),
    [
        (1, 0, 0, False), (1, 0, 1, True), (1, 1, 1, False), (1, 99, -1, True),
        (75, 5, 0, True), (127, 0, 5, False), (78, 0, -1, False), (137, 0, 1, True), (132, 0, 5, False),
    ],
)  # fmt: skip
def test_which_failures_are_retried(code: int, counted: int, count: int, again: bool) -> None:
    retries = Retries(count)
    retries.counted = counted
    assert retries.allows_retry(code, 1.0) is again


def test_a_transient_failure_uses_up_no_retry() -> None:
    retries = Retries(1)
    for _ in range(40):
        assert retries.allows_retry(exits.TEMPORARY, 1.0)
        retries.charge(exits.TEMPORARY, 1.0)
    assert retries.counted == 0
    assert retries.allows_retry(3, 1.0)
    retries.charge(3, 1.0)
    assert not retries.allows_retry(3, 1.0)


def test_backoff_grows_to_five_minutes_and_is_reset_by_work() -> None:
    retries = Retries(0)
    pauses = [retries.charge(exits.TEMPORARY, 1.0) for _ in range(14)]
    assert pauses[:3] == [0.2, 0.4, 0.8]
    assert pauses[-1] == 300.0
    assert retries.charge(exits.TEMPORARY, 301.0) == 0.2


def test_the_maximum_runtime_ends_uncounted_retries() -> None:
    retries = Retries.of(0, {MAXIMUM_VARIABLE: "0.01"})
    assert retries.allows_retry(exits.TEMPORARY, 0.1)
    retries.charge(exits.TEMPORARY, 0.1)
    retries.charge(exits.TEMPORARY, 0.1)
    assert not retries.allows_retry(exits.TEMPORARY, 0.1), "the third pause lasts 0.8 s of 0.6 s"
    assert "the maximum runtime of 0.01 min leaves no time" in retries.why_no_retry(exits.TEMPORARY)


def test_a_service_that_was_slow_starts_again_twice() -> None:
    retries = Retries(0)
    assert not retries.allows_retry(1, 5.0, ready=False), "a mistake in its options shows at once"
    assert not retries.allows_retry(1, 31.0, ready=True)
    assert not retries.allows_retry(137, 31.0, ready=False), "it was killed"
    for number in (1, 2):
        assert retries.allows_retry(1, 31.0, ready=False)
        pause = retries.charge(1, 31.0, ready=False)
        assert retries.describe(1, pause) == f"late, before its service was ready: retry {number} of 2, not counted"
    assert retries.has_retried
    assert retries.counted == 0
    assert not retries.allows_retry(1, 31.0, ready=False)
