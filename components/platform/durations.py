# SPDX-License-Identifier: Apache-2.0
"""What is said of a run in more places than one: how long it took, how far it says it has come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.platform.launcher_status import CUT

# So much of a progress line is for people; JSON has the rest.
_LONGEST = 200


def duration(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def progress(report: Any) -> str:
    """The last thing that a training script wrote of itself, in one short line."""
    if isinstance(report, Mapping):
        report = ", ".join(f"{key} {_short(value)}" for key, value in report.items())
    words = str(report) if report else ""
    return words if len(words) <= _LONGEST else words[:_LONGEST] + CUT


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
