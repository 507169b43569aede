# SPDX-License-Identifier: Apache-2.0
"""Notices that a gang hangs: no rank of it does anything for so long that none will again.

Each node watches itself and tells the others by a sign in the run's folder when it has been idle for the whole limit.
An activity takes the sign back. When the signs of all ranks stand, every node ends its processes, for the same reason.
One rank that compiles, or loads data, keeps all others waiting, and the run alive. When it ends well they get the whole
limit again: they may have waited for just that, and need a moment to go on.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from launcher import exits
from launcher.activity import LOOPBACK, Meter, Noise, Reading, noise_of, used
from launcher.board import FAILED, RETRY, SUCCEEDED, Board
from launcher.desk import Desk
from launcher.document import Launch
from launcher.escaping import terminal
from launcher.say import Voice
from launcher.stores import StoreError

VARIABLE = "TRAINYARD_STALL_SECONDS"
# So many readings within the limit: each averages what comes in bursts.
_READINGS = 30
_LONGEST_INTERVAL, _SHORTEST_INTERVAL = 60.0, 0.2
_LONGEST_LINE = 300
_LINE, _NOTHING = "line", "nothing"


@dataclass
class Idleness:
    """For how long nothing has been used, reading by reading."""

    noise: Noise
    seconds: float = 0.0
    last: Reading | None = None

    def add(self, reading: Reading, elapsed: float, interval: float) -> tuple[str, ...]:
        """What was used since the reading before. A pause of the whole node counts as one interval, not as idleness."""
        active = () if self.last is None else used(self.last, reading, elapsed, self.noise)
        idle = self.last is not None and not active
        self.seconds = self.seconds + min(elapsed, interval * 2) if idle else 0.0
        self.last = reading
        return active


@dataclass
class Stalls:
    """This node's watch on itself, and its view of the others. Off where the limit is 0."""

    launch: Launch
    limit: float
    desk: Desk | None
    meter: Meter
    say: Voice
    last_line: Callable[[], str]
    report: Callable[[str], None]
    _idleness: Idleness = field(init=False)
    _active: tuple[str, ...] = field(default=(), init=False)
    _generation: int = field(default=0, init=False)
    _running: bool = field(default=False, init=False)
    # Odd while this node has told the others that it is idle.
    _signs: int = field(default=0, init=False)
    _signed: int = field(default=-1, init=False)
    # Who has ended well, and since when this node knows it.
    _over: frozenset[int] = field(default=frozenset(), init=False)
    _over_since: float = field(default=-math.inf, init=False)
    _last: str = field(default="", init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._idleness = Idleness(noise_of(self.launch.framework, self.launch.processes))

    @property
    def watches(self) -> bool:
        """Only gangs of several nodes that can tell one another. A service waits by its nature."""
        several = self.desk is not None and self.desk.watches and self.launch.gang
        return several and self.limit > 0 and not self.launch.service

    def begin(self, generation: int, interface: str) -> None:
        """The command runs from now on. Nodes that meet on loopback share one machine's network."""
        if not self.watches:
            return
        with self._lock:
            self._idleness = Idleness(self._idleness.noise)
        self.meter.own_network = interface != LOOPBACK
        # Signs of another start of the processes say nothing of this one.
        self._signs += self._signs % 2
        self._generation, self._running = generation, True
        if self._thread is None:
            # A thread of its own: a driver that does not answer must not keep the node from ending.
            self._thread = threading.Thread(target=self._measure, name="stalls", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """The command does not run any more."""
        self._running = False

    def _measure(self) -> None:
        interval = min(max(self.limit / _READINGS, _SHORTEST_INTERVAL), _LONGEST_INTERVAL)
        before = time.monotonic()
        while True:
            time.sleep(interval)
            reading, now = self.meter.read(), time.monotonic()
            with self._lock:
                self._active = self._idleness.add(reading, now - before, interval) or self._active
            before = now

    def stalled(self, board: Board) -> str:
        """Why this node should end, as every rank is idle; empty while one is not."""
        if not self._running or self.desk is None:
            return ""
        # What ends all processes wakes those that still wait: that is no activity.
        if self.ended_elsewhere(board):
            return self.reason
        self._tell(self.desk, self._idleness.seconds >= self.limit)
        self._notice_ends(board)
        waited = time.monotonic() - self._over_since >= self.limit
        return self.reason if self._idle and waited and not self._busy(board) else ""

    def ended_elsewhere(self, board: Board) -> bool:
        """Whether another rank has seen all ranks idle, this one among them, and ended."""
        ends = (event.code for event in board.endings(self._generation) if event.how in (FAILED, RETRY))
        return self._signed == self._generation and exits.STALLED in ends

    @property
    def reason(self) -> str:
        """Of a run that hangs, as each of its ranks gives it."""
        return f"stalled: no {self.meter.measures} on any rank for {_duration(self.limit)} (`stallMinutes`)"

    @property
    def _idle(self) -> bool:
        return bool(self._signs % 2)

    def _tell(self, desk: Desk, idle: bool) -> None:
        """Posts a sign when this node falls idle, another when it is active again."""
        if idle == self._idle:
            return
        self._signs, self._signed = self._signs + 1, self._generation
        if idle:
            self._last = self._line()
        desk.sign(self._generation, self._signs, {_LINE: self._last})
        text = f"idle: no {self.meter.measures} on this node for {_duration(self.limit)}" if idle else ""
        self.say(f"{text}; the run ends when no rank does anything" if idle else f"active again: {self._used()}")
        self.report(text)

    def _line(self) -> str:
        """What the processes printed last, as one harmless line."""
        return terminal(self.say.masked(self.last_line())[:_LONGEST_LINE]).strip()

    def _used(self) -> str:
        return ", ".join(self._active)

    def _notice_ends(self, board: Board) -> None:
        """Ranks may end one after the other: the last good end counts."""
        over = frozenset(event.rank for event in board.endings() if event.how == SUCCEEDED)
        if over != self._over:
            self._over, self._over_since = over, time.monotonic()

    def _busy(self, board: Board) -> set[int]:
        """Ranks that may still do something: they have not ended well, and they are not idle."""
        roles = (role for role in self.launch.roles if not role.service)
        ranks = {rank for role in roles for rank in self.launch.ranks_of(role.name)}
        return ranks - self._over - board.idle(self._generation).keys() - {self.launch.rank}

    def account(self, board: Board) -> None:
        """Says each rank's last line. The first rank that hangs does so, for all."""
        if self.desk is None:
            return
        idle = board.idle(self._generation)
        if self.launch.rank > min(idle, default=self.launch.rank):
            return
        self.say(f"rank {self.launch.label(self.launch.rank)} printed last: {self._last or _NOTHING}")
        # The desk's thread has a connection of its own.
        folder = self.desk.open_folder(self.desk.uri)
        try:
            for rank, event in sorted(idle.items()):
                if rank != self.launch.rank:
                    content = folder.get(self.desk.sign_of(event))
                    self.say(f"rank {self.launch.label(rank)} printed last: {_told(content) or _NOTHING}")
        except StoreError as error:
            self.say(f"what the other ranks printed last cannot be read: {error}")
        finally:
            folder.close()


def _told(content: bytes | None) -> str:
    try:
        found = json.loads(content or b"{}").get(_LINE)
    except (ValueError, AttributeError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
