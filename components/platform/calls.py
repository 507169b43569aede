# SPDX-License-Identifier: Apache-2.0
"""What surrounds one call of a cloud: who is told of it, how long it may take, and what ends it early."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from components.platform.errors import Cancelled
from launcher.escaping import terminal

A = TypeVar("A")
B = TypeVar("B")


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
