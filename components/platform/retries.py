# SPDX-License-Identifier: Apache-2.0
"""Calls of a cloud that are tried again: visibly, for a limited time, and until Ctrl-C.

A cloud says what its errors mean (`Answers`); how to try again is the same for all.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from components.platform.calls import Call
from components.platform.errors import ProviderError

T = TypeVar("T")

# For so long a cloud is asked again that is busy, or whose own part failed.
TRANSIENT_SECONDS = 120.0
_LONGEST_PAUSE = 15.0


@dataclass(frozen=True)
class Answers:
    """How the errors of one cloud's client are read."""

    # For how many seconds the call may be tried again. Takes the error, `access_minutes` and the call's patience.
    seconds_allowed: Callable[[Exception, float, float], float]
    # The error in one line.
    text: Callable[[Exception], str]
    # The error for a person: what was tried, what the cloud answered, what to do. Takes the seconds waited, too.
    refusal: Callable[[str, Exception, float], ProviderError]


def attempt(answers: Answers, call: Call, what: str, operation: Callable[[], T], access_minutes: float) -> T:
    """Do `operation`; try again while the cloud is busy, and for `access_minutes` while access is not in force."""
    first_refused, tries = 0.0, 0
    while True:
        call.stop.check()
        try:
            return operation()
        except Exception as error:
            allowed = answers.seconds_allowed(error, access_minutes, call.patience)
            # Time counts from the first refusal: a call that was refused slowly is still tried once more.
            first_refused = first_refused or time.monotonic()
            elapsed = time.monotonic() - first_refused
            if elapsed >= allowed:
                raise answers.refusal(what, error, elapsed if allowed else 0.0) from error
            reason = answers.text(error)
        pause = min(0.5 * 1.6**tries, _LONGEST_PAUSE, max(allowed - elapsed, 0.05)) * random.uniform(0.8, 1.0)
        tries += 1
        _report_retry(call, what, reason, elapsed, allowed, first=tries == 1)
        call.stop.wait(pause)


def _report_retry(call: Call, what: str, reason: str, elapsed: float, allowed: float, first: bool) -> None:
    if first:
        call.report.info(f"{what}: {reason}; trying again for up to {allowed:.0f} s")
    call.report.status(f"{what}: trying again, {elapsed:.0f} of {allowed:.0f} s: {reason}")
