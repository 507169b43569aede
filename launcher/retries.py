# SPDX-License-Identifier: Apache-2.0
"""Decides whether a failed node starts again, after which backoff, and until when.

A transient failure is retried and not counted. A failure of unknown kind is retried as often as the role allows. A
permanent failure is never retried. Retries that are not counted end with the run's maximum runtime.

A service that fails late, and before it was ready, has given up waiting for its own parts: Ray's does so after 30 s,
which is too short on a busy machine. It starts again twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from launcher import exits
from launcher.document import Launch
from launcher.settings import number_setting

MAXIMUM_VARIABLE = "TRAINYARD_MAXIMUM_MINUTES"
# Thirty days, for runs whose maximum runtime is not set.
MAXIMUM_MINUTES = 43200.0
# A service with a mistake in its options fails at once; only one that was slow fails later than this.
SLOW_VARIABLE = "TRAINYARD_SLOW_SECONDS"
SLOW_SECONDS = 20.0
_SLOW_STARTS = 2
_FIRST_PAUSE = 0.2
# The longest backoff by kind. A transient failure may last: a registry is down, a file system is mounted late.
_LONGEST_PAUSE = {exits.TRANSIENT: 300.0, exits.UNKNOWN: 30.0}


@dataclass
class Retries:
    """The retry policy of one node, and how many retries it has used up. `count` -1: without limit."""

    count: int
    minutes: float = MAXIMUM_MINUTES
    slow_seconds: float = SLOW_SECONDS
    counted: int = field(default=0, init=False)
    # How often this node's service has failed late, and before it was ready.
    slow_starts: int = field(default=0, init=False)
    # The number of transient failures in a row.
    transient: int = field(default=0, init=False)
    _slow: bool = field(default=False, init=False)
    _began: float = field(default_factory=time.monotonic, init=False)

    @classmethod
    def of(cls, count: int, environment: Mapping[str, str]) -> Retries:
        """A policy with the maximum runtime that the platform has set."""
        return cls(
            count,
            number_setting(environment, MAXIMUM_VARIABLE, MAXIMUM_MINUTES),
            number_setting(environment, SLOW_VARIABLE, SLOW_SECONDS),
        )

    @property
    def has_retried(self) -> bool:
        """Whether this node has started again."""
        return bool(self.counted or self.transient or self.slow_starts)

    def allows_retry(self, code: int, ran: float, ready: bool = True) -> bool:
        """Whether a node that failed with this code starts again. `ran`: for how many seconds it had run. `ready`:
        whether its service had been ready."""
        kind = exits.failure_kind(code)
        if self._was_slow(code, ran, ready):
            return True
        if kind == exits.TRANSIENT:
            return _retry_backoff(kind, self._in_a_row(ran)) < self._left()
        return kind == exits.UNKNOWN and (self.count < 0 or self.counted < self.count)

    def charge(self, code: int, ran: float, ready: bool = True) -> float:
        """Counts a failure that is retried. Returns the seconds until the retry."""
        self._slow = self._was_slow(code, ran, ready)
        if self._slow:
            self.slow_starts += 1
            return _FIRST_PAUSE
        if exits.failure_kind(code) == exits.TRANSIENT:
            self.transient = self._in_a_row(ran)
            return _retry_backoff(exits.TRANSIENT, self.transient)
        self.counted += 1
        return _retry_backoff(exits.UNKNOWN, self.counted)

    def describe(self, code: int, pause: float) -> str:
        """Describes the retry that was charged last, for the log and the node's status."""
        if self._slow:
            return f"late, before its service was ready: retry {self.slow_starts} of {_SLOW_STARTS}, not counted"
        kind = exits.failure_kind(code)
        when = f"the retry starts in {pause:.0f} s" if pause >= 1 else "the retry starts at once"
        if kind == exits.TRANSIENT:
            until = f"the maximum runtime ends this in {self._left() / 60:.0f} min"
            return f"a failure of the kind {kind}: {self.transient} in a row, not counted; {when}, {until}"
        allowed = "for ever" if self.count < 0 else f"of {self.count}"
        return f"a failure of the kind {kind}: retry {self.counted} {allowed}; {when}"

    def why_no_retry(self, code: int) -> str:
        """Why there is no retry; empty if the code alone explains it."""
        if exits.failure_kind(code) != exits.TRANSIENT:
            return ""
        return (
            f", {self.transient + 1} in a row: the maximum runtime of {self.minutes:g} min leaves no time for another"
        )

    def _was_slow(self, code: int, ran: float, ready: bool) -> bool:
        unknown = exits.failure_kind(code) == exits.UNKNOWN and code < exits.SIGNALLED
        return not ready and unknown and ran > self.slow_seconds and self.slow_starts < _SLOW_STARTS

    def _in_a_row(self, ran: float) -> int:
        """The failures in a row. A node that ran for long enough begins a new row."""
        return 1 if ran > _LONGEST_PAUSE[exits.TRANSIENT] else self.transient + 1

    def _left(self) -> float:
        return max(0.0, self.minutes * 60 - (time.monotonic() - self._began))


def _retry_backoff(kind: str, times: int) -> float:
    """The backoff: twice as long each time."""
    return min(_FIRST_PAUSE * 2.0 ** min(times - 1, 20), _LONGEST_PAUSE[kind])


@dataclass(frozen=True)
class Final:
    """A node that will not start again. `code` None: it was lost."""

    rank: int
    succeeded: bool
    code: int | None


@dataclass(frozen=True)
class Verdict:
    """How the run ended, and whose ending decided it."""

    succeeded: bool
    rank: int
    code: int | None


def run_verdict(launch: Launch, finals: Iterable[Final]) -> Verdict | None:
    """How the run ended; None while it goes on. `finals` are in order of time: the first one that decides counts."""
    succeeded: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    open_ranks = {rank for role in launch.roles if not role.service for rank in launch.ranks_of(role.name)}
    for final in finals:
        role = launch.role_of(final.rank)
        (succeeded if final.succeeded else failed)[role.name] += 1
        open_ranks.discard(final.rank)
        enough = role.min_succeeded is not None and role.min_succeeded >= 0
        if final.succeeded and enough and succeeded[role.name] >= (role.min_succeeded or 0):
            return Verdict(True, final.rank, 0)
        if final.succeeded and final.rank == 0 and launch.elastic:
            return Verdict(True, 0, 0)
        if not final.succeeded and not launch.spares(final.rank, sum(failed.values())):
            if launch.elastic or (role.min_failed >= 0 and (launch.gang or failed[role.name] >= role.min_failed)):
                return Verdict(False, final.rank, final.code)
            if launch.gang:
                return Verdict(True, final.rank, final.code)
        if not open_ranks:
            return Verdict(True, final.rank, final.code)
    return None


def start_name(launch: Launch) -> str:
    """The start's name, the same on all its nodes. Empty: only the attempt distinguishes starts."""
    return launch.identity.start(launch.rank, launch.nodes)


def in_start_folder(launch: Launch) -> Launch:
    """The launch with the start's folder in place of the attempt's."""
    if launch.folder is None:
        return launch
    name = start_name(launch)
    return replace(launch, folder=f"{launch.folder}/{name}") if name else launch
