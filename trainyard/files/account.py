# SPDX-License-Identifier: Apache-2.0
"""What a transfer has done so far. Workers write it, and whoever shows progress reads it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class Account:
    """`expected_bytes` grows while names are still being read. `sent_bytes` went over the wire, `kept_bytes` had
    arrived before."""

    moved: int = 0
    there: int = 0
    expected_bytes: int = 0
    sent_bytes: int = 0
    kept_bytes: int = 0
    # The name of each file that was not moved, and why.
    problems: list[tuple[str, str]] = field(default_factory=list)
    # What was moved but could not be verified, and why.
    remarks: list[tuple[str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, *, moved: int = 0, there: int = 0, expected: int = 0, sent: int = 0, kept: int = 0) -> None:
        with self._lock:
            self.moved += moved
            self.there += there
            self.expected_bytes += expected
            self.sent_bytes += sent
            self.kept_bytes += kept

    def problem(self, name: str, why: object) -> None:
        with self._lock:
            self.problems.append((name, str(why)))

    def remark(self, name: str, why: str) -> None:
        with self._lock:
            self.remarks.append((name, why))

    @property
    def done_bytes(self) -> int:
        return self.sent_bytes + self.kept_bytes
