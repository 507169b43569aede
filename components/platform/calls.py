# SPDX-License-Identifier: Apache-2.0
"""What surrounds one call of a cloud: who is told of it, how long it may take, and what ends it early."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from launcher.escaping import terminal

# The engine's own variable: with "true" it goes on with what does not depend on a resource that failed.
GO_ON = "PULUMI_CONTINUE_ON_ERROR"
A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

# For so long a cloud is asked again that is busy, or whose own part failed.
TRANSIENT_SECONDS = 120.0
_LONGEST_PAUSE = 15.0


class ProviderError(Exception):
    """An expected failure: shown as text, without a traceback."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(f"{cause}\n{remedy}" if remedy else cause)
        self.cause = cause
        self.remedy = remedy


class PartialFailureError(ProviderError):
    """The resource exists, but it is not as requested. The engine keeps it, and the next update continues with it."""

    def __init__(self, resource_id: str, outputs: Mapping[str, Any], cause: str, remedy: str = "") -> None:
        super().__init__(cause, remedy)
        self.resource_id = resource_id
        self.outputs = dict(outputs)


class Cancelled(ProviderError):  # noqa: N818 - it is the user's wish, not an error
    """The engine asked to stop."""

    def __init__(self) -> None:
        super().__init__("Cancelled.", "Run the same command again to go on from here.")


@dataclass(frozen=True)
class InputFailure:
    """An invalid input, and why it is invalid. `missing`: it is needed, and not there."""

    property: str
    reason: str
    missing: bool = False


class Reporter(Protocol):
    """How a resource reports to the person who watches the engine."""

    def info(self, message: str) -> None: ...
    def warning(self, message: str) -> None: ...
    def status(self, message: str) -> None:
        """Shows a line beside the resource until the next one replaces it."""


class Stop:
    """Whether the engine asked to stop. A stop interrupts every wait."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def ask(self) -> None:
        self._asked.set()

    def check(self) -> None:
        if self._asked.is_set():
            raise Cancelled

    def wait(self, seconds: float) -> None:
        if self._asked.wait(max(seconds, 0)):
            raise Cancelled


@dataclass(frozen=True)
class Call:
    """What surrounds one call of the engine."""

    urn: str
    type: str
    name: str
    report: Reporter
    stop: Stop
    timeout: float = 0.0
    seed: bytes = b""
    # The engine replaces a resource with one of the same inputs (`--replace`): do not adopt what exists already.
    anew: bool = False
    # The id of the resource that the new one replaces, where a plugin knows it.
    instead_of: str = ""
    # For so many seconds a cloud that does not answer at all is asked again.
    patience: float = 120.0
    started: float = field(default_factory=time.monotonic)

    def deadline(self, default_seconds: float) -> float:
        """When this call must be done: after the user's `customTimeouts`, or after the default."""
        return self.started + (self.timeout or default_seconds)


# Takes a line of progress. Only commands print, so a command passes its own function.
Tell = Callable[[str], None]


@dataclass(frozen=True)
class PersonReporter:
    """Reports to a person, one line at a time."""

    tell: Tell

    def info(self, message: str) -> None:
        self.tell(terminal(message))

    warning = info

    def status(self, message: str) -> None:
        """Ignored: only engines show a status, and what matters comes through `info` as well."""


def call_of(name: str, tell: Tell) -> Call:
    return Call(urn="", type="", name=name, report=PersonReporter(tell), stop=Stop())


def read_at_once(read: Callable[[A], B], wanted: Sequence[A], most: int) -> list[B]:
    """What `read` says of each, in their order; no more than `most` are read at the same time."""
    if len(wanted) < 2:
        return [read(one) for one in wanted]
    with ThreadPoolExecutor(min(most, len(wanted))) as pool:
        return list(pool.map(read, wanted))


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
