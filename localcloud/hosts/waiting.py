# SPDX-License-Identifier: Apache-2.0
"""Waits for the end of a process for a limited time, and leaves its result for others to read."""

from __future__ import annotations

import os
import signal
import time


def has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def ended_within(pid: int, seconds: float) -> bool:
    """Whether the process ended within this time. SIGCHLD must be blocked, so that no signal is missed."""
    deadline = time.monotonic() + seconds
    while not has_ended(pid):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        signal.sigtimedwait((signal.SIGCHLD,), left)
    return True
