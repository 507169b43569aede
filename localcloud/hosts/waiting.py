# SPDX-License-Identifier: Apache-2.0
"""Waits for the end of a process without taking its remains away, and for no longer than asked."""

from __future__ import annotations

import os
import signal
import time


def has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def ended_within(pid: int, seconds: float) -> bool:
    """SIGCHLD must be blocked: then none is missed between the look and the wait."""
    deadline = time.monotonic() + seconds
    while not has_ended(pid):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        signal.sigtimedwait((signal.SIGCHLD,), left)
    return True
