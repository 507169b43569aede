# SPDX-License-Identifier: Apache-2.0
"""Runs of a sweep with `atMost`: a run waits here, before it costs anything, until fewer of them are alive."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from components.platform.calls import Call
from components.platform.client import Runs
from components.platform.runs import RunSpec
from components.platform.values import Properties

_FIRST_PAUSE, _GROWTH, _LONGEST_PAUSE = 0.5, 1.5, 20.0
# While another run is next, a run looks this often whether `up` was asked to stop.
_STOP_SECONDS = 0.5


class Turns:
    """The runs of a sweep start one after the other: the one that is next asks the platform which others are alive.

    All runs of an `up` are started by one process, so a lock is enough. Runs of an earlier `up` are seen on the
    platform, which is also how this one finds those that it started itself.
    """

    def __init__(self) -> None:
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._guard = threading.Lock()

    @contextmanager
    def turn(self, call: Call, runs: Runs, spec: RunSpec, inputs: Properties) -> Iterator[Call]:
        """Inside, the run may start. Gives the call with the time after the wait: no timeout of the run includes it."""
        turns = inputs.get("turns")
        if not turns:
            yield call
            return
        lock = self._lock((spec.tags.get("job", ""), turns["names"]))
        while not lock.acquire(timeout=_STOP_SECONDS):
            call.stop.check()
        try:
            self._wait(call, runs, spec, inputs)
            yield replace(call, started=time.monotonic())
        finally:
            lock.release()

    def _lock(self, sweep: tuple[str, str]) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(sweep, threading.Lock())

    def _wait(self, call: Call, runs: Runs, spec: RunSpec, inputs: Properties) -> None:
        most, names, pause, said = inputs["turns"]["atMost"], inputs["turns"]["names"], _FIRST_PAUSE, ""
        while True:
            alive = runs.living(call, inputs)
            others = sorted(run for run in alive.values() if run.startswith(names))
            # A run that an interrupted `up` has started is adopted, however many others there are.
            if spec.fingerprint in alive or len(others) < most:
                return
            words = f"waits for its turn: at most {most} of the sweep at once, {', '.join(others[:4])} not over"
            call.report.status(words)
            if words != said:
                call.report.info(f"run {spec.display_name}: {words}")
                said = words
            call.stop.wait(pause)
            pause = min(pause * _GROWTH, _LONGEST_PAUSE)
