# SPDX-License-Identifier: Apache-2.0
"""When runs start: again after a failure, although no input changed; and in turn, in a sweep with `atMost`."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from components.platform.calls import Call, ProviderError
from components.platform.client import Runs, wait_for_end
from components.platform.inputs import own_inputs
from components.platform.runs import RunSpec, Try, never_began
from components.platform.values import Diff, Properties, canonical_json, changed_keys
from launcher.escaping import terminal_line

# The state key of a run that `up` saw fail before it began. Nothing ran, so the next `up` always starts it again.
UNBEGUN = "__unbegun"
# The state key of a run that `up` saw fail later than that. It may have trained for hours, so the next `up` starts it
# again only if RETRY_FAILED is 1. Programs see neither key.
FAILED = "__failed"
RETRY_FAILED = "TRAINYARD_RETRY_FAILED"

_NOT_BEGUN = (
    "The run had not begun. Correct the cause, or give new policies a minute to take effect; the next `up` starts it."
)
_NEXT_TIME = "Correct the cause; the next `up` starts the run again."
_WHEN_ASKED = (
    "Correct the cause. A higher `attempt`, or a change in what the run runs, starts it again; "
    f"so does `up` with {RETRY_FAILED}=1 in its environment."
)
_STOPPED = "A higher `attempt`, or a change in what the run runs, starts it again."


def retries_failed() -> bool:
    """Whether this `up` starts runs again that an earlier `up` saw fail."""
    return os.environ.get(RETRY_FAILED) == "1"


def failure_mark(state: Properties) -> Properties:
    """The mark in the state of a run that `up` has just seen fail, for the next `up`. A run that was cancelled, or
    whose record was deleted, gets no mark: it starts again only on request."""
    if never_began(state):
        return {UNBEGUN: True}
    return {FAILED: True} if state.get("state") == "FAILED" else {}


def marks_of(state: Properties) -> Properties:
    """The marks of a failed run, if it is still the same run."""
    return {key: state[key] for key in (UNBEGUN, FAILED) if key in state}


def remedy_for_mark(mark: Properties) -> str:
    if UNBEGUN in mark:
        return _NOT_BEGUN
    if FAILED not in mark:
        return _STOPPED
    return _NEXT_TIME if retries_failed() else _WHEN_ASKED


def reason_to_start(state: Properties, inputs: Properties) -> str:
    """The reason why the next `up` starts a failed run again, with the highest cost. Empty if it does not."""
    if state.get(UNBEGUN):
        return f"failed before it began: starts again, {_cost_in_node_hours(inputs)}"
    if state.get(FAILED) and retries_failed():
        return f"failed in an earlier `up`: starts again, {_cost_in_node_hours(inputs)}"
    return ""


def _cost_in_node_hours(inputs: Properties) -> str:
    # A row for several equal nodes has `replicas`. An unknown number counts as one.
    nodes = sum(many if isinstance(many := node.get("replicas"), int) else 1 for node in inputs["nodes"])
    minutes = inputs.get("maximumRuntimeMinutes")
    each = _count_with_unit(nodes, "node")
    if not isinstance(minutes, int):
        return f"without a limit in time ({each}, no maximum runtime)"
    total = _count_with_unit(nodes * minutes / 60, "node-hour")
    return f"at most {total} ({each} x {_count_with_unit(minutes / 60, 'hour')})"


def _count_with_unit(number: float, what: str) -> str:
    shown = f"{number:,.2f}".rstrip("0").rstrip(".")
    return f"{shown} {what}{'' if shown == '1' else 's'}"


class JobTries:
    """The runs and jobs that this process has seen: the engine requests a diff before it replaces anything."""

    def __init__(self) -> None:
        self._going: set[str] = set()
        self._replaced: set[str] = set()
        self._lock = threading.Lock()

    def announce(self, call: Call, runs: Callable[[], Runs], old: Properties, diff: Diff) -> None:
        """Reports which tries end with the replacement of the job, once for each job."""
        job = _job_of(old)
        if not diff.replaces or not job:
            return
        with self._lock:
            self._replaced.add(call.urn)
            if _stands_on(old) not in changed_keys(diff.changes) or job in self._going:
                return
            self._going.add(job)
        try:
            alive = runs().tries(call, old, patiently=False)
        except ProviderError as error:
            call.report.warning(f"the job is replaced; whether tries of it are alive is not known: {error.cause}")
            return
        if alive:
            call.report.warning(f"the job is replaced, which ends its tries: {_titles_of_tries(alive)}")

    def end(self, call: Call, runs: Runs, old: Properties, minutes: float) -> None:
        """Ends the tries that cannot continue without this run."""
        job_goes = _job_of(old) in self._going
        if call.urn in self._replaced and not job_goes:
            return
        run = (old.get("tags") or {}).get("run")
        alive = [other for other in runs.tries(call, old, patiently=True) if job_goes or other.like in ("", run)]
        if not alive:
            return
        call.report.warning(f"its tries end with it: {_titles_of_tries(alive)}; waiting until they have ended")
        nodes = [node for other in alive for node in other.nodes]
        runs.cancel(call, nodes)
        wait_for_end(call, runs, nodes, minutes)


def _stands_on(inputs: Properties) -> str:
    own = own_inputs(inputs.get("platform"))
    return own.stands_on if own else ""


def _job_of(inputs: Properties) -> str:
    """The resource that holds the run, such as its job or cluster, as text. Empty if its platform is not known."""
    named = inputs.get(_stands_on(inputs))
    return canonical_json(named) if named else ""


def _titles_of_tries(tries: Sequence[Try]) -> str:
    return terminal_line(", ".join(sorted(other.title for other in tries)))


_FIRST_PAUSE, _GROWTH, _LONGEST_PAUSE = 0.5, 1.5, 20.0
# How often a waiting run checks whether `up` was asked to stop.
_STOP_SECONDS = 0.5


class Turns:
    """The runs of a sweep start one after the other. Before a run costs anything, it waits until fewer than `atMost`
    others are alive.

    All runs of an `up` are started by one process, so a lock is enough. Runs of an earlier `up`, and those that this
    one has started, are read from the platform.
    """

    def __init__(self) -> None:
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._guard = threading.Lock()

    @contextmanager
    def turn(self, call: Call, runs: Runs, spec: RunSpec, inputs: Properties) -> Iterator[Call]:
        """Waits for the run's turn. Yields the call with the time after the wait, which no timeout of the run
        includes."""
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
        most, names, pause, reported = inputs["turns"]["atMost"], inputs["turns"]["names"], _FIRST_PAUSE, ""
        while True:
            alive = runs.living(call, inputs)
            others = sorted(run for run in alive.values() if run.startswith(names))
            # A run that an interrupted `up` has started is adopted, even if the limit is reached.
            if spec.fingerprint in alive or len(others) < most:
                return
            words = f"waits for its turn: at most {most} of the sweep at once, {', '.join(others[:4])} not over"
            call.report.status(words)
            if words != reported:
                call.report.info(f"run {spec.display_name}: {words}")
                reported = words
            call.stop.wait(pause)
            pause = min(pause * _GROWTH, _LONGEST_PAUSE)
