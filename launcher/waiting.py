# SPDX-License-Identifier: Apache-2.0
"""Waits that are bounded, jittered and seen: nobody wonders what a silent node waits for."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from launcher.say import Voice
from launcher.settings import number

PEERS_VARIABLE = "TRAINYARD_WAIT_SECONDS"
# A platform may take a quarter of an hour from the first node of a run to the last.
PEERS_SECONDS = 1800.0
_JITTER = 0.2
_SAY_EVERY = 10.0


class StoppedError(Exception):
    """The wait is over because the node is to end."""


@dataclass
class Wait:
    """One wait for something. `stopped` is asked at every turn, so that a signal is not left waiting."""

    say: Voice
    what: Callable[[], str]
    seconds: float
    remedy: str
    stopped: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self._said = self.started

    @property
    def waited(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self.started

    def turn(self, interval: float) -> bool:
        """Sleeps about an interval; False once the time is over."""
        now = time.monotonic()
        if now - self._said >= _SAY_EVERY:
            self._said = now
            self.say(f"waiting for {self.what()} ({self.waited:.0f} of {self.seconds:.0f} s)")
        end = min(now + interval * random.uniform(1 - _JITTER, 1 + _JITTER), self.started + self.seconds)
        while time.monotonic() < end:
            if self.stopped():
                raise StoppedError
            time.sleep(max(0.0, min(end - time.monotonic(), 0.1)))
        return time.monotonic() < self.started + self.seconds

    def missed(self) -> str:
        """What to say when the time is over."""
        return f"gave up after {self.seconds:.0f} s: waited for {self.what()}. Remedy: {self.remedy}"


def patience(environment: Mapping[str, str]) -> float:
    """How long to wait for the other nodes."""
    return number(environment, PEERS_VARIABLE, PEERS_SECONDS)
