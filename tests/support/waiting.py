# SPDX-License-Identifier: Apache-2.0
"""How tests wait for what another process or thread does: they look again and again, and give up after a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
# For what takes a moment on a quiet machine: a machine that does much else at once may take this long.
LONGEST_SECONDS = 180.0
# Between two looks, in seconds: so long at first, so much longer each time, and so long at most.
_FIRST_PAUSE, _SLOWER, _LONGEST_PAUSE = 0.01, 1.2, 0.25


def eventually(
    read: Callable[[], T],
    accept: Callable[[T], object] = bool,
    seconds: float = LONGEST_SECONDS,
    describe: Callable[[], str] = str,
    longest_pause: float = _LONGEST_PAUSE,
) -> T:
    """What `read` gives once it is accepted. `describe` says more where it never is.

    The longer it takes, the less often: looking takes the processor that what is waited for needs.
    """
    deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while not accept(value := read()):
        if time.monotonic() > deadline:
            raise AssertionError(f"still {value!r} after {seconds:g} seconds\n{describe()}".rstrip())
        time.sleep(pause)
        pause = min(pause * _SLOWER, longest_pause)
    return value
