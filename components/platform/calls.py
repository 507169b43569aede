# SPDX-License-Identifier: Apache-2.0
"""The context of one call to a cloud: reporting, timeout, cancellation, and retries with backoff."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from launcher.escaping import terminal_line

# The engine's variable: with "true", one failed resource does not stop resources that do not depend on it.
GO_ON = "PULUMI_CONTINUE_ON_ERROR"
A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

# How long a call is retried while the cloud is busy (429) or has an error of its own (5xx).
TRANSIENT_SECONDS = 120.0
_LONGEST_PAUSE = 15.0


class ProviderError(Exception):
    """An expected failure: shown as text, without a traceback."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(f"{cause}\n{remedy}" if remedy else cause)
        self.cause = cause
        self.remedy = remedy


class PartialFailureError(ProviderError):
    """The resource was made, but is not as requested. The engine keeps it, and the next update continues with it."""

    def __init__(self, resource_id: str, outputs: Mapping[str, Any], cause: str, remedy: str = "") -> None:
        super().__init__(cause, remedy)
        self.resource_id = resource_id
        self.outputs = dict(outputs)


class Cancelled(ProviderError):  # noqa: N818 - it is the user's wish, not an error
    """The engine requested a stop."""

    def __init__(self) -> None:
        super().__init__("Cancelled.", "Run the same command again to continue.")


@dataclass(frozen=True)
class InputFailure:
    """An invalid input, and why it is invalid. `missing`: a required input is absent."""

    property: str
    reason: str
    missing: bool = False


class Reporter(Protocol):
    """Where an operation reports its progress: in the engine's display, or in a command's output."""

    def info(self, message: str) -> None: ...
    def warning(self, message: str) -> None: ...
    def status(self, message: str) -> None:
        """Shows a line next to the resource until the next one replaces it."""


class Stop:
    """The engine's request to stop. It interrupts every wait."""

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
    """The context of one call by the engine or by a command."""

    urn: str
    type: str
    name: str
    report: Reporter
    stop: Stop
    timeout: float = 0.0
    seed: bytes = b""
    # The engine replaces a resource by one with the same inputs (`--replace`): do not adopt the existing one.
    anew: bool = False
    # The id of the resource that the new one replaces, if the plugin knows it.
    instead_of: str = ""
    # How many seconds a call is retried while the cloud does not answer at all.
    patience: float = 120.0
    started: float = field(default_factory=time.monotonic)

    def deadline(self, default_seconds: float) -> float:
        """When this call times out: after the user's `customTimeouts`, or after the default."""
        return self.started + (self.timeout or default_seconds)


# Takes a line of progress. Only commands print, so a command passes its own function of this type.
Tell = Callable[[str], None]


@dataclass(frozen=True)
class PersonReporter:
    """Reports to a user, one line at a time."""

    tell: Tell

    def info(self, message: str) -> None:
        self.tell(terminal_line(message))

    warning = info

    def status(self, message: str) -> None:
        """Ignored: only the engine can show a status line, and `info` gets everything important as well."""


def call_of(name: str, tell: Tell) -> Call:
    return Call(urn="", type="", name=name, report=PersonReporter(tell), stop=Stop())


def read_at_once(read: Callable[[A], B], wanted: Sequence[A], most: int) -> list[B]:
    """The results of `read` for each of `wanted`, in order. At most `most` of them are read at the same time."""
    if len(wanted) < 2:
        return [read(one) for one in wanted]
    with ThreadPoolExecutor(min(most, len(wanted))) as pool:
        return list(pool.map(read, wanted))


@dataclass(frozen=True)
class ErrorPolicy:
    """How the errors of one cloud's client are retried and shown."""

    # How many seconds the call may be retried. Takes the error, `access_minutes` and the call's `patience`.
    seconds_allowed: Callable[[Exception, float, float], float]
    # The error in one line.
    text: Callable[[Exception], str]
    # The error for a person: the operation, the cloud's answer, the remedy. Takes the operation's name, the error, and
    # the seconds of retries.
    refusal: Callable[[str, Exception, float], ProviderError]


def call_with_retries(
    errors: ErrorPolicy, call: Call, what: str, operation: Callable[[], T], access_minutes: float
) -> T:
    """Calls `operation`, and retries with backoff: while the cloud is busy, and up to `access_minutes` while new access
    is not in force."""
    first_refused, tries = 0.0, 0
    while True:
        call.stop.check()
        try:
            return operation()
        except Exception as error:
            allowed = errors.seconds_allowed(error, access_minutes, call.patience)
            # The time counts from the first error, so that a call with a slow first answer is still retried.
            first_refused = first_refused or time.monotonic()
            elapsed = time.monotonic() - first_refused
            if elapsed >= allowed:
                raise errors.refusal(what, error, elapsed if allowed else 0.0) from error
            reason = errors.text(error)
        pause = min(0.5 * 1.6**tries, _LONGEST_PAUSE, max(allowed - elapsed, 0.05)) * random.uniform(0.8, 1.0)
        tries += 1
        if tries == 1:
            call.report.info(f"{what}: {reason}; trying again for up to {allowed:.0f} s")
        call.report.status(f"{what}: trying again, {elapsed:.0f} of {allowed:.0f} s: {reason}")
        call.stop.wait(pause)


class LocalCloud(Protocol):
    """The interface of a local cloud for platforms. `localcloud.control.Cloud` implements it. `compartment` is for
    stacks; `tenancy` is the root compartment."""

    @property
    def home(self) -> Path: ...
    @property
    def endpoint(self) -> str: ...
    @property
    def tenancy(self) -> str: ...
    @property
    def compartment(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def config_file(self) -> Path: ...
    @property
    def env(self) -> Mapping[str, str]:
        """The environment variables for clients of this cloud."""

    def env_of_caller(self) -> Mapping[str, str]:
        """The same, with the credentials of the account that runs the command."""

    def env_for(self, profile: str) -> Mapping[str, str]: ...
