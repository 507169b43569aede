# SPDX-License-Identifier: Apache-2.0
"""Tells whether a process is still the one that was started. A pid alone may belong to a new process by now."""

from __future__ import annotations

from pathlib import Path


def start_time(pid: int | str) -> str:
    """The kernel's start time of a process; empty if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if fields[0] == "Z" else fields[19]


def is_same(pid: int, started: str) -> bool:
    return bool(started) and start_time(pid) == started
