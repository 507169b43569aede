# SPDX-License-Identifier: Apache-2.0
"""This node's correspondence with the run's folder: one thread reads the board and posts what the node has to say.

The main thread never waits for the bucket, unless it wants to: children are watched and signals handed over all along.
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
from launcher.settings import number
from launcher.stores import REFUSED, Folder, Open, StoreError

LOST_VARIABLE = "TRAINYARD_LOST_SECONDS"
LOST_SECONDS = 60.0
ACCESS_VARIABLE = "TRAINYARD_ACCESS_SECONDS"
# A policy that was just made may take minutes to come into force.
ACCESS_SECONDS = 300.0
_RETRY_SECONDS = 2.0
# Between two looks of who waits for news right now.
_HURRIED_SECONDS = 0.05


def meeting_interval(nodes: int, waited: float) -> float:
    """While somebody is missing: a quarter of the time waited so far, as nodes that start together come together.

    Well under a second at most, and the more nodes ask the less often each does.
    """
    return min(max(0.03 + nodes / 160, waited / 4), 0.35 + nodes / 160, 0.6)


def watching_interval(nodes: int) -> float:
    """While training goes on: the object store hears at most about sixteen questions a second from all nodes."""
    return min(max(1.0, nodes / 16), 6.0)


class Strangers(Protocol):
    """Nodes of the run with another launcher: what they are told and heard in, a folder in the store that they know."""

    @property
    def folder(self) -> Folder:
        """Where they look."""

    @property
    def members(self) -> frozenset[int]:
        """The ranks that only they have."""

    @property
    def alone(self) -> str:
        """Why they do not start again with the others, for people."""

    def announcement(self, address: str) -> tuple[str, Any]:
        """An object by which they know that this node is there."""

    def farewell(self) -> tuple[str, Any]:
        """An object by which they know that the main node has ended for good."""

    def events(self, ours: Mapping[int, Event], since: float) -> list[Event]:
        """Their signs, as the board has them; for ranks that none of ours has."""


@dataclass
class _Pulse:
    """When a rank was last heard, by our own clock."""

    at: float
    since: float


@dataclass
class Desk:
    """Everything a node says to and hears from the folder."""

    launch: Launch
    uri: str
    open_folder: Open
    environment: Mapping[str, str]
    say: Callable[[str], None]
    _posts: OrderedDict[tuple[Folder, str], bytes] = field(default_factory=OrderedDict)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _pulses: dict[int, _Pulse] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nonce = secrets.token_hex(4)
        self.lost_after = number(self.environment, LOST_VARIABLE, LOST_SECONDS)
        self.refused: str = ""
        self.interval = meeting_interval(self.launch.nodes, 0.0)
        self.watches = self.launch.nodes > 1
        self.folder = self.open_folder(self.uri)
        self.strangers = self.launch.identity.strangers(self.launch, self.open_folder)
        self._board = Board((), 0.0)
        self._round = 0
        self._here = ""
        self._renew_at = 0.0
        self._closed = False
        self._hurried = False
        self._refused_since = 0.0
        self._thread = threading.Thread(target=self._run, name="desk", daemon=True)
        self._thread.start()

    @property
    def board(self) -> Board:
        """The latest that was read."""
        return self._board

    def arrive(self, generation: int, address: str) -> None:
        """Says that this node is there."""
        name = board.here_name(generation, self.launch.rank, self.nonce, address)
        content = {"node": self.launch.node, "role": self.launch.role, "address": address}
        with self._changed:
            self._here = name
        self.post(name, content)
        if self.strangers is not None and not generation:
            self.post(*self.strangers.announcement(address), self.strangers.folder)

    def renew(self) -> None:
        """Says once more, and soon, that this node is there."""
        with self._changed:
            self._posts[self.folder, self._here] = b"{}"
            self._changed.notify_all()

    def end(self, generation: int, how: str, code: int) -> None:
        """Says how this node's processes have ended."""
        self.post(board.end_name(generation, self.launch.rank, self.nonce, how, code), {})
        if self.strangers is not None and self.launch.rank == 0 and how != board.RETRY:
            self.post(*self.strangers.farewell(), self.strangers.folder)

    def sign(self, generation: int, number: int, content: Any) -> None:
        """Says that this node is idle, by an odd number, or active again, by an even one."""
        self.post(board.sign_name(generation, self.launch.rank, self.nonce, number), content)

    def sign_of(self, event: Event) -> str:
        """The name of the object behind a sign."""
        return board.sign_name(event.generation, event.rank, event.nonce, event.sign)

    def post(self, name: str, content: Any, folder: Folder | None = None) -> None:
        """Puts an object, as soon as it can be; what was to be put there before is forgotten."""
        with self._changed:
            self._posts[folder or self.folder, name] = json.dumps(content, separators=(",", ":")).encode()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Waits until everything is posted."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._posts or bool(self.refused), seconds)

    def fresh(self, seconds: float) -> Board:
        """A board that was read after everything had been posted, if that can be had in time."""
        self.flush(seconds)
        with self._changed:
            wanted = self._round + (2 if self.watches else 0)
            self._hurried = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._round >= wanted or bool(self.refused), seconds)
            self._hurried = False
        return self._board

    def check(self) -> None:
        """LaunchError once it is clear that the folder is closed to us."""
        if self.refused:
            raise LaunchError(self.refused)

    def lost(self) -> list[int]:
        """Ranks whose launchers have given no sign of life for too long, though we could hear."""
        if self.launch.identity.starts_nodes_again:
            return []
        now, ended = time.monotonic(), {event.rank for event in self._board.endings()}
        return [
            rank
            for rank, pulse in sorted(self._pulses.items())
            if now - pulse.since > self.lost_after and rank != self.launch.rank and rank not in ended
        ]

    def close(self, seconds: float) -> bool:
        """Posts what is left and ends; False where something could not be posted."""
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
                if self.watches and self._here and time.monotonic() >= next_read and not self._waiting(posted):
                    self._read()
                    next_read = time.monotonic() + self.interval * random.uniform(0.8, 1.2)
                self._refused_since = 0.0
            except StoreError as error:
                self._pulses.clear()
                self._trouble(error)
            except LaunchError as error:
                self._refuse(str(error))
            with self._changed:
                if not self._posts and not self._closed:
                    pause = next_read - time.monotonic() if self.watches and self._here else _RETRY_SECONDS
                    self._changed.wait(_HURRIED_SECONDS if self._hurried else max(min(pause, self.interval), 0.0))
                if self._hurried:
                    next_read = 0.0

    def _waiting(self, posted: bool) -> bool:
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
        found = tuple(board.events(self.folder.list(board.FOLDER)))
        own = [event.at for event in found if event.nonce == self.nonce and event.address]
        since = self._board.since or (min(own) if own else 0.0)
        ours = Board(found, since)
        theirs = self.strangers.events(ours.current(), since) if self.strangers is not None else []
        with self._changed:
            self._board = Board((*found, *theirs), since)
            self._round += 1
            # Strangers give no further sign of life.
            self._feel(ours.current())
            self._changed.notify_all()

    def _feel(self, current: Mapping[int, Event]) -> None:
        now = time.monotonic()
        for rank, event in current.items():
            pulse = self._pulses.get(rank)
            if pulse is None or pulse.at != event.at:
                self._pulses[rank] = _Pulse(event.at, now)

    def _trouble(self, error: StoreError) -> None:
        """What passes is tried again; a refusal may be access that is not in force yet."""
        now = time.monotonic()
        if error.status in REFUSED:
            self._refused_since = self._refused_since or now
            allowed = number(self.environment, ACCESS_VARIABLE, ACCESS_SECONDS)
            if now - self._refused_since > allowed:
                self._refuse(
                    f"this run may not use {self.folder.uri}: {error}. Check that the bucket exists, and that the"
                    " stack's access lets runs read and write there (`trainyard access` shows it)"
                )
                return
        self.say(f"{error}; trying again")
        time.sleep(_RETRY_SECONDS)

    def _refuse(self, text: str) -> None:
        with self._changed:
            self.refused = text
            self._closed = True
            self._changed.notify_all()
