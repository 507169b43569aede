# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the board, the run's coordination objects, in a thread of its own (launcher/board.py).

So the main thread need not wait for the bucket: it watches its processes and forwards signals meanwhile.
"""

from __future__ import annotations

import json
import random
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from launcher import board
from launcher.board import Board, Event
from launcher.compatibility import Protocol
from launcher.document import Launch
from launcher.errors import LaunchError
from launcher.settings import number_setting
from launcher.stores import REFUSED, Folder, Open, StoreError

LOST_VARIABLE = "TRAINYARD_LOST_SECONDS"
LOST_SECONDS = 60.0
ACCESS_VARIABLE = "TRAINYARD_ACCESS_SECONDS"
# A new policy may take minutes to come into force.
ACCESS_SECONDS = 300.0
_RETRY_SECONDS = 2.0
# A store that goes on to refuse is mentioned again after this time, then after twice as long each time.
_SAY_AGAIN_SECONDS = 10.0
# The polling interval while the main thread waits for a fresh board.
_HURRIED_SECONDS = 0.05


def meeting_interval(nodes: int, waited: float) -> float:
    """The polling interval while nodes are missing: a quarter of the time waited so far, because nodes that start
    together arrive together.

    It stays well under a second, and grows with the number of nodes.
    """
    return min(max(0.03 + nodes / 160, waited / 4), 0.35 + nodes / 160, 0.6)


def watching_interval(nodes: int) -> float:
    """The polling interval during training: all nodes together send about sixteen requests a second at most."""
    return min(max(1.0, nodes / 16), 6.0)


class ForeignNodes(Protocol):
    """Nodes of the run whose images have another launcher. They communicate through a folder of their own."""

    @property
    def folder(self) -> Folder:
        """The folder that they read and write."""

    @property
    def members(self) -> frozenset[int]:
        """The ranks of such nodes."""

    @property
    def alone(self) -> str:
        """Why such nodes do not start again with the others, for people."""

    def announcement(self, address: str) -> tuple[str, Any]:
        """The object (name and content) that tells them that this node has arrived."""

    def farewell(self) -> tuple[str, Any]:
        """The object that tells them that the main node has ended and will not start again."""

    def events(self, ours: Mapping[int, Event], since: float) -> list[Event]:
        """Their events in the board's form, for ranks that no node of ours has."""


@dataclass
class _Heartbeat:
    """A rank's newest arrival: its time in the store (`at`), and when it was first seen by our own clock (`since`)."""

    at: float
    since: float


@dataclass
class BoardClient:
    """Posts this node's events, and reads those of all nodes."""

    launch: Launch
    uri: str
    open_folder: Open
    environment: Mapping[str, str]
    say: Callable[[str], None]
    _posts: OrderedDict[tuple[Folder, str], bytes] = field(default_factory=OrderedDict)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _heartbeats: dict[int, _Heartbeat] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nonce = secrets.token_hex(4)
        self.lost_after = number_setting(self.environment, LOST_VARIABLE, LOST_SECONDS)
        self.refused: str = ""
        self.interval = meeting_interval(self.launch.nodes, 0.0)
        self.watches = self.launch.nodes > 1
        self.folder = self.open_folder(self.uri)
        self.foreign_nodes = self.launch.identity.foreign_nodes(self.launch, self.open_folder)
        self._board = Board((), 0.0)
        self._round = 0
        self._here = ""
        self._renew_at = 0.0
        self._closed = False
        self._hurried = False
        self._trouble: StoreError | None = None
        self._trouble_since, self._said_at, self._say_again_after = 0.0, 0.0, _SAY_AGAIN_SECONDS
        self._soon = False
        self._thread = threading.Thread(target=self._run, name="board", daemon=True)
        self._thread.start()

    @property
    def board(self) -> Board:
        """The board as it was last read."""
        return self._board

    @property
    def trouble(self) -> str:
        """Why the store can be neither read nor written at the moment, in its own words; empty if it can."""
        return str(self._trouble or self.folder.trouble)

    def arrive(self, generation: int, address: str) -> None:
        """Posts this node's arrival. The thread renews it as a heartbeat."""
        name = board.here_name(generation, self.launch.rank, self.nonce, address)
        content = {"node": self.launch.node, "role": self.launch.role, "address": address}
        with self._changed:
            self._here = name
        self.post(name, content)
        if self.foreign_nodes is not None and not generation:
            self.post(*self.foreign_nodes.announcement(address), self.foreign_nodes.folder)

    def renew(self) -> None:
        """Renews the arrival at once."""
        with self._changed:
            self._posts[self.folder, self._here] = b"{}"
            self._changed.notify_all()

    def end(self, generation: int, how: str, code: int) -> None:
        """Posts how this node's processes ended."""
        self.post(board.end_name(generation, self.launch.rank, self.nonce, how, code), {})
        if self.foreign_nodes is not None and self.launch.rank == 0 and how != board.RETRY:
            self.post(*self.foreign_nodes.farewell(), self.foreign_nodes.folder)

    def report_idle(self, generation: int, number: int, content: Any) -> None:
        """Posts that this node is idle (an odd number) or active again (an even one)."""
        self.post(board.idle_name(generation, self.launch.rank, self.nonce, number), content)

    def report_test(self, generation: int, found: str) -> None:
        """Posts that this node tests what the run expects, or what it has found."""
        self.post(board.finding_name(generation, self.launch.rank, self.nonce, found), {})

    def read_soon(self) -> None:
        """Reads the board as soon as everything is posted, and not only after the interval."""
        with self._changed:
            self._soon = True
            self._changed.notify_all()

    def idle_object(self, event: Event) -> str:
        """The name of the object behind an idle report."""
        return board.idle_name(event.generation, event.rank, event.nonce, event.idle_number)

    def post(self, name: str, content: Any, folder: Folder | None = None) -> None:
        """Puts an object as soon as possible. It replaces content of the same name that has not been put yet."""
        self.post_bytes(name, json.dumps(content, separators=(",", ":")).encode(), folder)

    def post_bytes(self, name: str, content: bytes, folder: Folder | None = None) -> None:
        """The same with content that is not JSON."""
        with self._changed:
            self._posts[folder or self.folder, name] = content
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Waits until everything is posted."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._posts or bool(self.refused), seconds)

    def fresh(self, seconds: float) -> Board:
        """Waits for a board that was read after everything was posted. After `seconds` it returns the last one read."""
        self.flush(seconds)
        with self._changed:
            wanted = self._round + (2 if self.watches else 0)
            self._hurried = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._round >= wanted or bool(self.refused), seconds)
            self._hurried = False
        return self._board

    def check(self) -> None:
        """Raises LaunchError if the store refuses access to the folder for good."""
        if self.refused:
            raise LaunchError(self.refused)

    def lost(self) -> list[int]:
        """The ranks without a heartbeat for `lost_after` seconds, while we could read the board."""
        if self.launch.identity.starts_nodes_again:
            return []
        now, ended = time.monotonic(), {event.rank for event in self._board.endings()}
        return [
            rank
            for rank, heartbeat in sorted(self._heartbeats.items())
            if now - heartbeat.since > self.lost_after and rank != self.launch.rank and rank not in ended
        ]

    def close(self, seconds: float) -> bool:
        """Posts the rest and ends the thread. Returns False if something could not be posted."""
        done = self.flush(seconds)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(2.0)
        return done

    def _run(self) -> None:
        next_read = 0.0
        self.folder.give_up_when(lambda: self._closed)
        while not self._closed:
            try:
                posted = self._post_one()
                if self.watches and self._here and time.monotonic() >= next_read and not self._has_more(posted):
                    self._read()
                    next_read = time.monotonic() + self.interval * random.uniform(0.8, 1.2)
                self._note_answer()
            except StoreError as error:
                self._heartbeats.clear()
                self._handle_error(error)
            except LaunchError as error:
                self._refuse(str(error))
            with self._changed:
                if not self._posts and not self._closed:
                    pause = next_read - time.monotonic() if self.watches and self._here else _RETRY_SECONDS
                    self._changed.wait(_HURRIED_SECONDS if self._hurried else max(min(pause, self.interval), 0.0))
                if self._hurried or self._soon:
                    next_read, self._soon = 0.0, False

    def _has_more(self, posted: bool) -> bool:
        return posted and bool(self._posts)

    def _post_one(self) -> bool:
        with self._changed:
            if not self._posts and self._here and self.watches and time.monotonic() >= self._renew_at:
                self._posts[self.folder, self._here] = b"{}"
            if not self._posts:
                return False
            (folder, name), content = next(iter(self._posts.items()))
        folder.put(name, content)
        with self._changed:
            if self._posts.get((folder, name)) == content:
                del self._posts[folder, name]
            if name == self._here:
                self._renew_at = time.monotonic() + min(board.RENEW_SECONDS, self.lost_after / 3)
            self._changed.notify_all()
        return True

    def _read(self) -> None:
        listed = self.folder.list(board.FOLDER)
        found = tuple(board.parse_board_events(listed))
        own = [event.at for event in found if event.nonce == self.nonce and event.address]
        since = self._board.since or (min(own) if own else 0.0)
        ours = Board(found, since)
        theirs = self.foreign_nodes.events(ours.current(), since) if self.foreign_nodes is not None else []
        with self._changed:
            self._board = Board((*found, *theirs), since, board.parse_stack_requests(listed, since))
            self._round += 1
            # Foreign nodes send no heartbeats.
            self._note_heartbeats(ours.current())
            self._changed.notify_all()

    def _note_heartbeats(self, current: Mapping[int, Event]) -> None:
        now = time.monotonic()
        for rank, event in current.items():
            heartbeat = self._heartbeats.get(rank)
            if heartbeat is None or heartbeat.at != event.at:
                self._heartbeats[rank] = _Heartbeat(event.at, now)

    def _note_answer(self) -> None:
        if self._trouble is not None:
            self.say(f"the object store answers again, after {time.monotonic() - self._trouble_since:.0f} s")
            self._trouble = None

    def _handle_error(self, error: StoreError) -> None:
        """Retries after an error. A refusal counts as final only after the time that new access may take."""
        now, known = time.monotonic(), self._trouble
        new = known is None or (known.status in REFUSED) != (error.status in REFUSED)
        self._trouble, self._trouble_since = error, now if new else self._trouble_since
        tries, waited = "trying again", now - self._trouble_since
        if error.status in REFUSED:
            allowed = number_setting(self.environment, ACCESS_VARIABLE, ACCESS_SECONDS)
            if waited > allowed:
                self._refuse(
                    f"this run may not use {self.folder.uri}: {error}. Check that the bucket exists, and that the"
                    " statement that lets runs manage its objects is in force (`trainyard access` prints it)"
                )
                return
            tries = f"new access may come into force late: trying again, {waited:.0f} of {allowed:.0f} s"
        if new or now - self._said_at >= self._say_again_after:
            self._said_at, self._say_again_after = now, _SAY_AGAIN_SECONDS if new else self._say_again_after * 2
            self.say(f"{error}; {tries}")
        time.sleep(_RETRY_SECONDS)

    def _refuse(self, text: str) -> None:
        with self._changed:
            self.refused = text
            self._closed = True
            self._changed.notify_all()
