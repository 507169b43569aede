# SPDX-License-Identifier: Apache-2.0
"""What a stack takes with it when it goes, said before anything is removed: live runs, records, logs, data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from runstatus.words import duration


@dataclass(frozen=True)
class LiveRun:
    """A run that has not ended, and since when it goes on."""

    title: str
    state: str
    since: datetime

    def __str__(self) -> str:
        return f"{self.title}: {self.state} for {duration((datetime.now(UTC) - self.since).total_seconds())}"


@dataclass(frozen=True)
class Going:
    """`live` runs are ended; `lines` say what else goes, or stays, with what is in it."""

    live: tuple[LiveRun, ...]
    lines: tuple[str, ...]
