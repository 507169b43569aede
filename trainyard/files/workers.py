# SPDX-License-Identifier: Apache-2.0
"""Threads that each move one part at a time. They end with the process, so Ctrl-C waits for none of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

COUNT = 4
_Task = Callable[[], None]


class Workers:
    """Runs tasks in parallel. The first failure is raised where tasks are given or waited for, and ends the rest."""

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
        """Takes the task once few others wait, so that nobody reads a million names ahead."""
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
            except BaseException as error:  # whatever it is, the thread that waits must get it
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
