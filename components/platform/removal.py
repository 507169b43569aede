# SPDX-License-Identifier: Apache-2.0
"""What is lost when a stack is taken down, shown before anything is removed: live runs, records, logs, data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from components.platform.durations import duration


@dataclass(frozen=True)
class LiveRun:
    """A run that has not ended, and when it began."""

    title: str
    state: str
    since: datetime

    def __str__(self) -> str:
        return f"{self.title}: {self.state} for {duration((datetime.now(UTC) - self.since).total_seconds())}"


def data_line(noun: str, name: str, inside: str) -> str:
    """A bucket or repository, and what is in it."""
    return f"{noun:8} {name}{f' with its {inside}' if inside else ', which is empty'}"


@dataclass(frozen=True)
class Removal:
    """`live` runs will be ended. `lines` describe what else goes or stays, and what is in it."""

    live: tuple[LiveRun, ...]
    lines: tuple[str, ...]
