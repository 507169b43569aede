# SPDX-License-Identifier: Apache-2.0
"""Checks whether a node's command may start: ports, the framework's services, a command that has to succeed first."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from launcher import exits, frameworks, network
from launcher.compatibility import shell_words
from launcher.document import Awaited, Launch
from launcher.errors import LaunchError
from launcher.network import missing_program
from launcher.placeholders import Place
from launcher.printing import LinePrinter
from launcher.processes import ChildProcesses, SideProcess, Spec
from launcher.settings import number_setting

_ASK_EVERY = 0.2
_SAY_EVERY = 10.0
# How often the awaited command is retried. It may start an interpreter, and the framework's services need the
# processors too.
_TRY_EVERY = 1.0
_LONGEST_WORDS = 120
# A shell's codes for a program that does not exist or cannot be executed: waiting does not change that.
_NEVER = (126, 127)
_WRONG = "`awaits_command` in the framework's file"
PEERS_VARIABLE = "TRAINYARD_WAIT_SECONDS"
# A platform may take a quarter of an hour to start all nodes of a run.
PEERS_SECONDS = 1800.0
_JITTER = 0.2


@dataclass
class Readiness:
    """Called at every turn of a node's main loop. It checks at intervals, and never blocks."""

    launch: Launch
    place: Place
    awaited: Spec | None
    children: ChildProcesses
    say: LinePrinter
    _asked: float = field(default=0.0, init=False)
    _said: float = field(default_factory=time.monotonic, init=False)
    _answered: set[tuple[int, int]] = field(default_factory=set, init=False)
    _side_process: SideProcess | None = field(default=None, init=False)
    _tried: float = field(default=0.0, init=False)
    _last: str = field(default="", init=False)
    _heard: str = field(default="", init=False)
    _succeeded: bool = field(default=False, init=False)

    def waits_for(self) -> str:
        """What the command still waits for, for people; empty if it may start."""
        now = time.monotonic()
        if now - self._asked < _ASK_EVERY:
            return self._last or "…"
        self._asked = now
        self._last = (
            self._closed_port() or frameworks.what_command_awaits(self.launch, self.place) or self._failing_command(now)
        )
        if self._last and now - self._said > _SAY_EVERY:
            self._said = now
            self.say(f"waiting for {self._last}")
        return self._last

    def _closed_port(self) -> str:
        """The first port that has not answered yet. A port that has answered is not checked again."""
        for awaited in self.launch.awaits:
            for rank in self._ranks(awaited):
                port = self.launch.awaited_port(awaited, rank)
                if (rank, port) in self._answered:
                    continue
                address = self.place.addresses[rank]
                if not network.port_answers(address, port):
                    return f"port {port} of rank {self.launch.label(rank)} to answer at {address}:{port}"
                self._answered.add((rank, port))
        return ""

    def _ranks(self, awaited: Awaited) -> range:
        ranks = self.launch.ranks_of(awaited.role)
        return ranks if awaited.every else ranks[:1]

    def _failing_command(self, now: float) -> str:
        """Starts the awaited command, checks how it ended, and retries it a little later."""
        if self.awaited is None or self._succeeded:
            return ""
        if self._side_process is None:
            self._side_process, self._tried = self._try(self.awaited), now
        code, words = self._side_process.code, self._words(self.awaited)
        if code == 0:
            self._succeeded = True
            return ""
        if self._side_process.last_line:
            self._heard = f", and printed: {self._side_process.last_line}"
        if code in _NEVER:
            raise LaunchError(
                f"{words} ended with {exits.describe_exit(code)}{self._heard}: correct {_WRONG}, or what it runs"
            )
        if code is None:
            return f"{words} to succeed: it has run for {now - self._tried:.0f} s{self._heard}"
        lacks = f"{words} to succeed: it ended with {exits.describe_exit(code)}{self._heard}"
        if now - self._tried >= _TRY_EVERY:
            self._side_process = None
        return lacks

    def _try(self, spec: Spec) -> SideProcess:
        try:
            return self.children.start_side_process(spec)
        except FileNotFoundError:
            raise LaunchError(missing_program(spec.words[0], spec.environment, _WRONG)) from None
        except OSError as error:
            raise LaunchError(f"`{spec.words[0]}` of `awaits_command` cannot be started: {error.strerror}") from None

    def _words(self, spec: Spec) -> str:
        words = shell_words(spec.words)
        return f"`{words if len(words) <= _LONGEST_WORDS else words[:_LONGEST_WORDS] + '…'}`"


class StoppedError(Exception):
    """A wait ended because the node has to end."""


@dataclass
class Wait:
    """A wait with a timeout. `stopped` is called at every turn, so that a signal ends the wait."""

    say: LinePrinter
    what: Callable[[], str]
    seconds: float
    remedy: str
    stopped: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self._said = self.started

    @property
    def waited(self) -> float:
        """Seconds since the wait began."""
        return time.monotonic() - self.started

    def turn(self, interval: float) -> bool:
        """Sleeps about an interval, with jitter. Returns False after the timeout."""
        now = time.monotonic()
        if now - self._said >= _SAY_EVERY:
            self._said = now
            self.say(f"waiting for {self.what()} ({self.waited:.0f} of {self.seconds:.0f} s)")
        end = min(now + interval * random.uniform(1 - _JITTER, 1 + _JITTER), self.started + self.seconds)
        while time.monotonic() < end:
            if self.stopped():
                raise StoppedError
            time.sleep(max(0.0, min(end - time.monotonic(), 0.1)))
        return time.monotonic() < self.started + self.seconds

    def timeout_message(self) -> str:
        """The message after the timeout."""
        return f"gave up after {self.seconds:.0f} s: waited for {self.what()}. Remedy: {self.remedy}"


def peers_timeout(environment: Mapping[str, str]) -> float:
    """The timeout of waits for other nodes."""
    return number_setting(environment, PEERS_VARIABLE, PEERS_SECONDS)
