# SPDX-License-Identifier: Apache-2.0
"""Lets only the newest start of a run write its checkpoints, by fencing tokens.

All starts of a run share its checkpoints, so a new start resumes where the last one was. An older start that is still
running, or comes back from a pause, must not write there any more. The tokens are names of objects beside the
checkpoints:

    claims/<start>                          made once, when a node of the start first restores; the latest one counts
    writing/<start>/<rank>/<seconds>        made before a node writes, renewed while it does, removed after that

A node that restores first makes its claim, then waits until no older start writes. A node that writes first announces
that, then looks for a newer claim. So at least one of the two always sees the other. Times are by the store's clock.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

from launcher.board import rfc3339_seconds
from launcher.errors import MissingError
from launcher.printing import LinePrinter
from launcher.readiness import Wait
from launcher.stores import EXISTS, REFUSED, Folder, Stored, StoreError

# Beside the checkpoints and not among them, because that folder belongs to the team.
SUFFIX = ".writers"
_CLAIMS, _WRITING = "claims/", "writing/"
_LOOK_SECONDS = 0.5
# A writer renews its object this often within the heartbeat timeout. After this part of the timeout without a renewal
# it stops writing.
_RENEWALS, _OVERDUE = 6, 0.5


class FencedError(Exception):
    """The node has not renewed its object for too long, and may count as dead: its upload must not be completed."""


@dataclass
class Fence:
    """The fence of one node. `connect` gives each thread a folder with a connection of its own."""

    connect: Callable[[], Folder]
    start: str
    rank: int
    say: LinePrinter
    lost_after: float
    # This start must not write any more: a newer one has made its claim, or the store refuses ours for good.
    excluded: bool = field(default=False, init=False)
    _claimed: bool = field(default=False, init=False)
    _renewed_at: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._folder = self.connect()
        self._own = f"{_WRITING}{self.start}/{self.rank:04d}/{math.ceil(self.lost_after)}"

    def enter(self, wait: Wait, access_seconds: float) -> None:
        """Waits until no older start writes any more. Only then may the checkpoints be restored."""
        if self._claimed or self.excluded:
            return
        writers: list[str] = []
        first_seen: dict[tuple[str, str], float] = {}
        while self._first_claim(wait, access_seconds):
            listed = self._look(self._folder)
            writers[:] = [] if self.excluded else self._older_writers(listed, first_seen)
            if not writers:
                if not self.excluded and self.rank == 0:
                    self._tidy(listed)
                return
            wait.what = lambda: f"an earlier start of this run to stop writing checkpoints (rank {', '.join(writers)})"
            if not wait.turn(_LOOK_SECONDS):
                raise MissingError(wait.timeout_message())

    @contextmanager
    def writing(self) -> Iterator[bool]:
        """Announces that this node writes, and yields whether it may."""
        if self.excluded:
            yield False
            return
        self._renew(self._folder)
        done = threading.Event()
        renews = threading.Thread(target=self._keep_renewed, args=(done,), name="fence", daemon=True)
        try:
            self._look(self._folder)
            renews.start()
            yield not self.excluded
        finally:
            done.set()
            if renews.ident is not None:
                renews.join()
            # If the object cannot be removed, it soon counts as a dead writer's.
            with suppress(StoreError):
                self._folder.remove(self._own)

    def may_write(self) -> bool:
        """Whether this start may write checkpoints. StoreError: it may, but this node must first renew its object."""
        if not self.excluded and self._is_overdue():
            raise StoreError(0, "the object store has been out of reach for so long that this node must not write")
        return not self.excluded

    def guarded(self, file: IO[bytes]) -> IO[bytes]:
        """The file, wrapped: its upload fails with FencedError once this node may count as dead."""
        return _Guarded(file, self._is_overdue)  # type: ignore[return-value]  # as much of a file as an upload needs

    def _is_overdue(self) -> bool:
        return _seconds_since_boot() - self._renewed_at > self.lost_after * _OVERDUE

    def _first_claim(self, wait: Wait, access_seconds: float) -> bool:
        """Makes the claim. Returns False if the store refuses it for good."""
        while not self._claimed:
            try:
                self._claim()
            except StoreError as error:
                if error.status not in REFUSED:
                    raise
                if wait.waited > access_seconds or not wait.turn(_LOOK_SECONDS):
                    self.excluded = True
                    self.say(f"checkpoints of this start are not uploaded: {error}")
                    return False
        return True

    def _claim(self) -> None:
        try:
            self._folder.put(f"{_CLAIMS}{self.start}", b"{}", new=True)
        except StoreError as error:
            if error.status != EXISTS:
                raise
        self._claimed = True

    def _look(self, folder: Folder) -> list[Stored]:
        """Lists all tokens, and notices a newer start."""
        listed = folder.list("")
        claims = {item.name[len(_CLAIMS) :]: item for item in listed if item.name.startswith(_CLAIMS)}
        newest = max(claims, key=lambda start: (rfc3339_seconds(claims[start].modified), start), default=self.start)
        with self._lock:
            if newest != self.start and not self.excluded:
                self.excluded = True
                self.say("a newer start of this run writes the checkpoints from now on, and this one no longer does")
        return listed

    def _older_writers(self, listed: list[Stored], first_seen: dict[tuple[str, str], float]) -> list[str]:
        """The ranks of older starts that may still write. `first_seen`: by our clock, when each renewal was first
        listed. A writer whose last renewal is older than its timeout counts as dead: by our clock, or by the store's
        clock when we made our claim.
        """
        claims = [rfc3339_seconds(item.modified) for item in listed if item.name == f"{_CLAIMS}{self.start}"]
        found = []
        for item in listed:
            start, rank, lost_after = _parse_writer(item.name)
            if not start or start == self.start:
                continue
            silent = _seconds_since_boot() - first_seen.setdefault((item.name, item.modified), _seconds_since_boot())
            if max([silent, *(claim - rfc3339_seconds(item.modified) for claim in claims)]) < lost_after:
                found.append(rank)
        return found

    def _tidy(self, listed: list[Stored]) -> None:
        """Removes the tokens of older starts: the newer claim has made them void."""
        for item in listed:
            if (_parse_writer(item.name)[0] or item.name[len(_CLAIMS) :]) != self.start:
                with suppress(StoreError):
                    self._folder.remove(item.name)

    def _renew(self, folder: Folder) -> None:
        begun = _seconds_since_boot()
        folder.put(self._own, b"{}")
        self._renewed_at = begun

    def _keep_renewed(self, done: threading.Event) -> None:
        folder = self.connect()
        while not done.wait(self.lost_after / _RENEWALS):
            # A node that cannot renew its object stops writing by itself.
            with suppress(StoreError):
                self._renew(folder)
                self._look(folder)


def _parse_writer(name: str) -> tuple[str, str, float]:
    """Start, rank and timeout of an object of a writer; empty for any other object."""
    parts = name[len(_WRITING) :].split("/") if name.startswith(_WRITING) else []
    if len(parts) != 3 or not parts[1].isdigit() or not parts[2].isdigit():
        return "", "", 0.0
    return parts[0], str(int(parts[1])), float(parts[2])


def _seconds_since_boot() -> float:
    """Seconds by a clock that also runs while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass
class _Guarded:
    file: IO[bytes]
    is_overdue: Callable[[], bool]

    def read(self, size: int = -1) -> bytes:
        if self.is_overdue():
            raise FencedError
        return self.file.read(size)

    def seek(self, offset: int) -> int:
        return self.file.seek(offset)
