# SPDX-License-Identifier: Apache-2.0
"""Detects a stalled gang: no rank has been active for `stallMinutes`.

Each node measures its own activity. When it has been idle for the whole limit, it reports that on the board. When it is
active again, it withdraws the report. Once all ranks are reported idle, every node ends its processes for the same
reason. So one rank that compiles, or loads data, keeps the run alive. When a rank ends with success, the others get the
whole limit again, because they may have waited for it.

Other runs may wait for work, such as those of Dask, of Ray and of single nodes. Once none of their nodes does anything,
that is said, and ends nothing.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from launcher import exits
from launcher.activity import LOOPBACK, Meter, Noise, Reading, active_resources, noise_of
from launcher.board import FAILED, RETRY, SUCCEEDED, Board
from launcher.board_client import BoardClient
from launcher.document import Launch
from launcher.escaping import terminal_line
from launcher.printing import LinePrinter
from launcher.stores import StoreError

VARIABLE = "TRAINYARD_STALL_SECONDS"
# Readings within the limit. Each one averages over its interval, so short bursts do not count as activity.
_READINGS = 30
_LONGEST_INTERVAL, _SHORTEST_INTERVAL = 60.0, 0.2
_LONGEST_LINE = 300
_LINE, _NOTHING = "line", "nothing"
# What the only node says that does anything.
_WAITED_FOR = "the other nodes have done nothing for"


@dataclass
class Idleness:
    """Adds up for how long the node has been idle, reading by reading."""

    noise: Noise
    seconds: float = 0.0
    last: Reading | None = None
    _excused: bool = False

    def excuse(self) -> None:
        """What is used until the next reading is no activity of the node: this program itself has caused it."""
        self._excused = True

    def add(self, reading: Reading, elapsed: float, interval: float) -> tuple[str, ...]:
        """Adds a reading, and returns what was used since the last one. If the whole node was paused meanwhile, at most
        two intervals count as idle."""
        active = () if self.last is None else active_resources(self.last, reading, elapsed, self.noise)
        active, self._excused = () if self._excused else active, False
        idle = self.last is not None and not active
        self.seconds = self.seconds + min(elapsed, interval * 2) if idle else 0.0
        self.last = reading
        return active


@dataclass
class Stalls:
    """Watches this node's activity, and combines it with the others' reports. Off if the limit is 0."""

    launch: Launch
    limit: float
    board_client: BoardClient | None
    meter: Meter
    say: LinePrinter
    last_line: Callable[[], str]
    report: Callable[[str], None]
    _idleness: Idleness = field(init=False)
    _active: tuple[str, ...] = field(default=(), init=False)
    _generation: int = field(default=0, init=False)
    _running: bool = field(default=False, init=False)
    # The number of this node's last report: odd while it is idle. And the generation of that report.
    _idle_number: int = field(default=0, init=False)
    _reported_in: int = field(default=-1, init=False)
    # Whether it was said that no other node does anything, or in a run that does not end for that: no node at all.
    _said: bool = field(default=False, init=False)
    # The ranks that have ended with success, and since when this node knows that.
    _over: frozenset[int] = field(default=frozenset(), init=False)
    _over_since: float = field(default=-math.inf, init=False)
    _last: str = field(default="", init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        self._idleness = Idleness(noise_of(self.launch.framework, self.launch.processes))

    @property
    def watches(self) -> bool:
        """Whether a stall ends this node: in a gang of several nodes with a board. Not a service, which may wait."""
        return self._several and self.launch.gang and self.limit > 0 and not self.launch.service

    @property
    def reports(self) -> bool:
        """Whether a stall is only reported: in a run that is no gang, or has a single node."""
        return self.limit > 0 and (self.launch.nodes == 1 or (self._several and not self.launch.gang))

    @property
    def _several(self) -> bool:
        return self.board_client is not None and self.board_client.watches

    def begin(self, generation: int, interface: str) -> None:
        """Begins to measure: the command runs. On loopback the nodes share one network, so its bytes do not count."""
        if not (self.watches or self.reports):
            return
        with self._lock:
            self._idleness = Idleness(self._idleness.noise)
        self.meter.own_network = interface != LOOPBACK
        # Reports of an earlier generation do not count in this one.
        self._idle_number += self._idle_number % 2
        self._generation, self._running, self._said = generation, True, False
        if self._thread is None:
            # A thread of its own, because a GPU driver that hangs must not keep the node from ending.
            self._thread = threading.Thread(target=self._measure, name="stalls", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Stops measuring: the command has ended."""
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
        """The reason to end this node because all ranks are idle; empty if one is not."""
        if self._running and self.reports:
            self._report_stall(board)
        if not self._running or self.reports or self.board_client is None:
            return ""
        # When other ranks end, the processes that waited for them wake up. That is not activity.
        if self.ended_elsewhere(board):
            return self.reason
        self._report_change(self.board_client, self._idleness.seconds >= self.limit)
        self._notice_ends(board)
        self._report_waiting_others(board)
        return self.reason if self._all_idle(board) else ""

    def ended_elsewhere(self, board: Board) -> bool:
        """Whether another rank has seen all ranks idle, including this one, and ended."""
        ends = (event.code for event in board.endings(self._generation) if event.how in (FAILED, RETRY))
        return self._reported_in == self._generation and exits.STALLED in ends

    def explains_end(self, board: Board) -> bool:
        """Whether this node's processes ended because of a stall. The first rank that ends may be one whose processes
        take long to end, and says so only then."""
        return self.ended_elsewhere(board) or (self._reported_in == self._generation and self._all_idle(board))

    def _all_idle(self, board: Board) -> bool:
        waited = time.monotonic() - self._over_since >= self.limit
        return self._idle and waited and not self._busy(board)

    @property
    def reason(self) -> str:
        """The reason that each rank of a stalled run gives."""
        return f"stalled: no {self.meter.measures} on any rank for {_format_duration(self.limit)} (`stallMinutes`)"

    @property
    def _idle(self) -> bool:
        return bool(self._idle_number % 2)

    def _report_change(self, board_client: BoardClient, idle: bool) -> None:
        """Reports when this node has become idle or active."""
        if idle == self._idle:
            return
        self._idle_number, self._reported_in = self._idle_number + 1, self._generation
        if idle:
            self._last = self._line()
        board_client.report_idle(self._generation, self._idle_number, {_LINE: self._last})
        text = f"idle: no {self.meter.measures} on this node for {_format_duration(self.limit)}" if idle else ""
        self.say(f"{text}; the run ends when no rank does anything" if idle else f"active again: {self._used()}")
        self._report_text(text)

    def _report_waiting_others(self, board: Board) -> None:
        """Reports when this node is the only one that does anything: the others may wait for it for ever."""
        alone = not self._idle and bool(board.idle(self._generation)) and not self._busy(board)
        if alone == self._said:
            return
        self._said = alone
        text = f"{_WAITED_FOR} {_format_duration(self.limit)}, and may wait for this one"
        if alone:
            self.say(text)
        if not self._idle:
            self._report_text(text if alone else "")

    def _report_stall(self, board: Board) -> None:
        """Reports when no node does anything any more, or when this one is active again."""
        idle = self._idleness.seconds >= self.limit
        if idle != self._idle:
            self._idle_number += 1
            if self.board_client is not None and self._several:
                self.board_client.report_idle(self._generation, self._idle_number, {_LINE: self._line()})
        ended = {event.rank for event in board.endings()}
        others = set(range(self.launch.nodes)) - ended - board.idle(self._generation).keys() - {self.launch.rank}
        said = idle and not others
        if said == self._said:
            return
        self._said = said
        text = f"idle: no {self.meter.measures} on any node for {_format_duration(self.limit)} (`stallMinutes`)"
        again = "another node" if idle else self._used()
        self.say(f"{text}; that does not end such a run" if said else f"active again: {again}")
        self._report_text(text if said else "")

    def _report_text(self, text: str) -> None:
        # What looks at the idle node must not make it active.
        self._idleness.excuse()
        self.report(text)
        self._idleness.excuse()

    def _line(self) -> str:
        """The processes' last line, escaped and cut."""
        return terminal_line(self.say.masked(self.last_line())[:_LONGEST_LINE]).strip()

    def _used(self) -> str:
        return ", ".join(self._active)

    def _notice_ends(self, board: Board) -> None:
        """Notes when a rank ends with success: the limit begins again at the last such end."""
        over = frozenset(event.rank for event in board.endings() if event.how == SUCCEEDED)
        if over != self._over:
            self._over, self._over_since = over, time.monotonic()

    def _busy(self, board: Board) -> set[int]:
        """The other ranks that may be active: they have not ended with success, and are not reported idle."""
        roles = (role for role in self.launch.roles if not role.service)
        ranks = {rank for role in roles for rank in self.launch.ranks_of(role.name)}
        return ranks - self._over - board.idle(self._generation).keys() - {self.launch.rank}

    def print_last_lines(self, board: Board) -> None:
        """Prints the last line of each rank. Only the first stalled rank does."""
        if self.board_client is None:
            return
        idle = board.idle(self._generation)
        if self.launch.rank > min(idle, default=self.launch.rank):
            return
        self.say(f"rank {self.launch.label(self.launch.rank)} printed last: {self._last or _NOTHING}")
        # A connection of its own: the other one belongs to the board client's thread.
        folder = self.board_client.open_folder(self.board_client.uri)
        try:
            for rank, event in sorted(idle.items()):
                if rank != self.launch.rank:
                    content = folder.get(self.board_client.idle_object(event))
                    self.say(f"rank {self.launch.label(rank)} printed last: {_last_line_in(content) or _NOTHING}")
        except StoreError as error:
            self.say(f"what the other ranks printed last cannot be read: {error}")
        finally:
            folder.close()


def _last_line_in(content: bytes | None) -> str:
    try:
        found = json.loads(content or b"{}").get(_LINE)
    except (ValueError, AttributeError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""


def _format_duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
