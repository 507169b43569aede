# SPDX-License-Identifier: Apache-2.0
"""Polling for results of other processes and threads, with a timeout."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
# The timeout for what takes a moment on an idle machine: a busy machine may take this long.
LONGEST_SECONDS = 180.0
# Pauses between two checks, in seconds: the first one, the factor by which they grow, and the longest.
_FIRST_PAUSE, _SLOWER, _LONGEST_PAUSE = 0.01, 1.2, 0.25


def eventually(
    read: Callable[[], T],
    accept: Callable[[T], object] = bool,
    seconds: float = LONGEST_SECONDS,
    describe: Callable[[], str] = str,
    longest_pause: float = _LONGEST_PAUSE,
) -> T:
    """Calls `read` until its result is accepted, and returns that. `describe` adds to the message of a timeout.

    The pauses grow, because each check takes processor time from the process that the test waits for.
    """
    deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while not accept(value := read()):
        if time.monotonic() > deadline:
            raise AssertionError(f"still {value!r} after {seconds:g} seconds\n{describe()}".rstrip())
        time.sleep(pause)
        pause = min(pause * _SLOWER, longest_pause)
    return value
