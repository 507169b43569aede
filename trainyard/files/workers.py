# SPDX-License-Identifier: Apache-2.0
"""Threads that move one part each at a time. They are daemons, so Ctrl-C does not wait for them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

COUNT = 4
_Task = Callable[[], None]


class Workers:
    """Runs tasks in parallel. `give` and `finish` raise the first failure, which also stops all other tasks."""

    def __init__(self, count: int = COUNT) -> None:
        self._waiting: deque[_Task] = deque()
        self._most = count
        self._unfinished = 0
        self._failure: BaseException | None = None
        self._over = False
        self._changed = threading.Condition()
        for number in range(count):
            threading.Thread(target=self._work, name=f"transfer-{number}", daemon=True).start()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._over = True
            self._waiting.clear()
            self._changed.notify_all()

    def give(self, task: _Task) -> None:
        """Queues the task, and blocks while the queue is full: a bucket may have millions of names."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or len(self._waiting) < self._most)
            self._raise()
            self._waiting.append(task)
            self._unfinished += 1
            self._changed.notify_all()

    def finish(self) -> None:
        """Waits for every task."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or not self._unfinished)
            self._raise()

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        while (task := self._next()) is not None:
            failure: BaseException | None = None
            try:
                task()
            except BaseException as error:  # the waiting thread must get it, whatever it is
                failure = error
            with self._changed:
                self._unfinished -= 1
                self._failure = self._failure or failure
                self._changed.notify_all()

    def _next(self) -> _Task | None:
        with self._changed:
            self._changed.wait_for(lambda: self._over or bool(self._waiting))
            if self._over:
                return None
            task = self._waiting.popleft()
            self._changed.notify_all()
            return task


@dataclass
class TransferReport:
    """What a transfer has moved, and what it could not move.

    `expected_bytes` grows while names are still being listed. `sent_bytes` went over the network; `kept_bytes` were
    there before.
    """

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
