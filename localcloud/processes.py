# SPDX-License-Identifier: Apache-2.0
"""Is this process still the one that was started? A pid alone may have gone to someone else."""

from __future__ import annotations

from pathlib import Path


def start_time(pid: int) -> str:
    """The kernel's start time of a process; empty when there is none, or only its remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if fields[0] == "Z" else fields[19]


def is_same(pid: int, started: str) -> bool:
    return bool(started) and start_time(pid) == started
