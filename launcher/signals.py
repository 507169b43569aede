# SPDX-License-Identifier: Apache-2.0
"""Signals to the launcher are signals to what it runs."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_HANDED_OVER = (signal.SIGUSR1, signal.SIGUSR2)


class Signals:
    """Remembers the first signal that asks for the end; hands all of them over to `target` once there is one."""

    def __init__(self) -> None:
        self.received = 0
        self.target: Callable[[int], None] | None = None
        for number in (*_ENDING, *_HANDED_OVER):
            # Ignored on purpose by what started us, as nohup does with SIGHUP: then it stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def ended(self) -> bool:
        """Whether the platform, or a person, asked for the end."""
        return bool(self.received)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number in _ENDING and not self.received:
            self.received = number
        if self.target is not None:
            self.target(number)
