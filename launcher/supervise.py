# SPDX-License-Identifier: Apache-2.0
"""One life of a node's processes: starts them, watches them, ends them, and says why they ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType

from launcher import exits
from launcher.commands import Work
from launcher.document import Launch
from launcher.errors import LaunchError, MissingError
from launcher.network import missing_program
from launcher.placeholders import Place
from launcher.printing import LinePrinter
from launcher.processes import ChildProcesses, Spec
from launcher.readiness import Readiness

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_FORWARDED = (signal.SIGUSR1, signal.SIGUSR2)
GRACE_VARIABLE = "TRAINYARD_GRACE_SECONDS"
GRACE_SECONDS = 6.0
READY_VARIABLE = "TRAINYARD_READY_SECONDS"
READY_SECONDS = 300.0
_TURN = 0.05
# While the node trains, a turn costs it processor time, and nothing but its end is waited for.
_TURN_OF_TRAINING = 0.1


class Signals:
    """Remembers the first signal that asks this node to end. Forwards all signals to `target`, if it is set."""

    def __init__(self) -> None:
        self.received = 0
        self.target: Callable[[int], None] | None = None
        for number in (*_ENDING, *_FORWARDED):
            # A signal that our parent ignores on purpose stays ignored, such as SIGHUP by nohup.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def ended(self) -> bool:
        """Whether the platform, or a person, asked this node to end."""
        return bool(self.received)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number in _ENDING and not self.received:
            self.received = number
        if self.target is not None:
            self.target(number)


@dataclass(frozen=True)
class Ended:
    """How a life ended: the processes' exit code. `stopped`: why they were told to end, if they were.

    `ready` is False if it ended before the command could start.
    """

    code: int
    stopped: str = ""
    signal: int = 0
    ready: bool = True


@dataclass
class Life:
    """One life of all processes on this node. `outside` returns the reason to end them, or ""."""

    launch: Launch
    place: Place
    work: Work
    children: ChildProcesses
    signals: Signals
    say: LinePrinter
    outside: Callable[[], str]
    on_start: Callable[[], None] = lambda: None
    before_stop: Callable[[], None] = lambda: None
    on_done: Callable[[], None] = lambda: None
    grace: float = GRACE_SECONDS
    ready_seconds: float = READY_SECONDS
    _readiness: Readiness = field(init=False)

    def __post_init__(self) -> None:
        self._readiness = Readiness(self.launch, self.place, self.work.awaited, self.children, self.say)

    def run(self) -> Ended:
        """Runs the processes until this life is over."""
        self.signals.target = self._on_signal
        grace = self.grace
        try:
            ended = self._run()
            # After a signal the processes have had their grace period, and the platform does not wait long.
            grace = 0.0 if ended.signal else grace
            return ended
        finally:
            self.children.clear(grace)
            self.signals.target = None

    def _run(self) -> Ended:
        self._start(self.work.services)
        waiting, began = True, time.monotonic()
        while True:
            if self.signals.received:
                return self._signalled()
            stop = self.outside()
            if stop:
                self.before_stop()
                self.children.stop(self.grace)
                return Ended(0, stopped=stop)
            over = self._over(waiting)
            if over is not None:
                if over.code == 0 and self.work.services and self.work.commands:
                    self.on_done()
                return over
            if waiting:
                lacks = self._readiness.waits_for()
                if not lacks:
                    self._start(self.work.commands)
                    self.on_start()
                    waiting = False
                elif time.monotonic() - began > self.ready_seconds:
                    raise MissingError(f"gave up after {self.ready_seconds:g} s: waited for {lacks}")
            time.sleep(_TURN if waiting else _TURN_OF_TRAINING)

    def _on_signal(self, number: int) -> None:
        if self.signals.received:
            self.before_stop()
        self.children.signal(number)

    def _start(self, specs: Sequence[Spec]) -> None:
        for spec in specs:
            try:
                self.children.start(spec)
            except FileNotFoundError:
                raise LaunchError(missing_program(spec.words[0], spec.environment)) from None
            except OSError as error:
                raise LaunchError(f"`{spec.words[0]}` cannot be started: {error.strerror}") from None

    def _over(self, waiting: bool) -> Ended | None:
        """The end of this life: at the first failure, or once everything but helpers has ended with success."""
        ended = self.children.ended()
        for spec, code in ended:
            if code or (spec.helper and self.children.running):
                if spec.helper:
                    self.say(f"{spec.prefix.strip()} ended with {exits.describe_exit(code)} while it was needed")
                return Ended(code or 1, ready=not waiting)
        if waiting or [spec for spec in self.children.running if not spec.helper]:
            return None
        return Ended(0)

    def _signalled(self) -> Ended:
        """Waits after a signal, which the handler has forwarded. Processes that do not end in time are killed."""
        deadline = time.monotonic() + self.grace
        while [spec for spec in self.children.running if not spec.helper] and time.monotonic() < deadline:
            time.sleep(_TURN)
        return Ended(exits.SIGNALLED + self.signals.received, signal=self.signals.received)
