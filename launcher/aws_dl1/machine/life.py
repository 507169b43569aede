# SPDX-License-Identifier: Apache-2.0
"""One start on this machine, from its ticket to its end. Each step is recorded before it is carried out. So the program
can resume after a kill at any point, and never runs a start twice."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from launcher import exits
from launcher.aws_dl1.machine import commands, record
from launcher.aws_dl1.machine.cluster import format_rfc3339
from launcher.aws_dl1.machine.facts import spot_interruption
from launcher.aws_dl1.machine.logs import Forwarder, Stream, say_into
from launcher.aws_dl1.machine.record import Record
from launcher.aws_dl1.machine.starting import Machine, Starting, clean_start, container_name, in_progress
from launcher.aws_dl1.machine.tickets import CANCELED, FAILED, SUCCEEDED, Ticket
from launcher.errors import LaunchError, MissingError
from launcher.printing import LinePrinter
from launcher.readiness import StoppedError
from launcher.stores import StoreError

_LOOK_SECONDS = 1.0
_SPOT_SECONDS = 5.0
# The launcher ends its processes within seconds, and then puts the output into the bucket. A spot instance goes two
# minutes after the notice.
_GRACE_SECONDS, _SPOT_GRACE_SECONDS = 120, 75
_DOCKER_TRIES = 30
_CANCELED = "was canceled"
_REBOOTED = "the machine rebooted while the start was running; a start never runs twice: start the run again"
_GONE = "the container is gone, and nobody knows how it ended: start the run again"
_ELSEWHERE = "another machine had this node's part when it ended, or this machine lost its record: start the run again"


@dataclass(frozen=True)
class End:
    """How a node's part ended."""

    state: str
    code: int | None = None
    details: str = ""
    grace: int = _GRACE_SECONDS


@dataclass
class Life:
    """`pause` sleeps for a time or until this program is woken, and returns whether it was woken. `wake` wakes it.
    `leaving`: whether this program is to end while the container goes on. `tick` is called while the start goes on."""

    machine: Machine
    ticket: Ticket
    pause: Callable[[float], bool]
    wake: Callable[[], None]
    leaving: Callable[[], bool]
    tick: Callable[[], None]
    _looked: float = field(default=-math.inf, init=False)
    _asked: float = field(default=-math.inf, init=False)
    _reason: End | None = field(default=None, init=False)
    _told_to_end: bool = field(default=False, init=False)
    _began: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.say = _ConsoleAndLog(self)
        self.stream: Stream | None = None
        if self.machine.settings.log_group:
            name = self.ticket.stream(self.machine.settings.job, self.machine.me.node)
            plain = name.replace(":", "_").replace("*", "_")
            self.stream = Stream(self.machine.identity, self.machine.settings.log_group, plain, self.machine.say)

    def run(self, elsewhere: bool) -> bool:
        """Returns False if the program left before the start's end. `elsewhere`: the bucket says that this node began
        the start, but this disk has no record of it."""
        folder = self.machine.cluster.folder
        folder.report_to(self.say)
        try:
            return self._run(elsewhere)
        except StoreError as error:
            self.say(f"{self.ticket.start} waits for the bucket: {error}")
            raise
        finally:
            folder.report_to(self.machine.say)

    def _run(self, elsewhere: bool) -> bool:
        kept = record.read_record(self.machine.paths, self.ticket.number)
        if kept is None:
            kept = self._accepted()
            end = End(FAILED, None, _ELSEWHERE) if elsewhere else None
        else:
            end = self._interrupted(kept)
        self._began = kept.began
        if kept.phase != record.ENDED:
            try:
                end = end or self._carry_out(kept)
            except (LaunchError, MissingError) as error:
                end = End(FAILED, None, str(error))
            except StoppedError:
                end = self._reason
            if end is None:
                return False
            self._end(kept, end)
        self.machine.cluster.put_state(self.ticket.number, kept.state)
        remove_ended_start(self.machine, kept)
        return True

    def _accepted(self) -> Record:
        began = time.time()
        folder = record.start_folder(self.machine.paths, self.ticket.number)
        kept = Record(self.ticket.number, self.machine.boot, folder, began=began)
        kept.state = in_progress(self.machine.me.instance, began)
        kept.save()
        return kept

    def _interrupted(self, kept: Record) -> End | None:
        """Resumes a start that an earlier process of this program began. Returns its end if it cannot go on."""
        if kept.phase == record.ENDED:
            return None
        if kept.boot != self.machine.boot:
            return End(FAILED, None, _REBOOTED)
        if self._container() is None:
            if kept.phase == record.RUNNING:
                return End(FAILED, None, _GONE)
            self.say(f"{self.ticket.start}: it was interrupted before its container started; starting that now")
        else:
            kept.phase = record.RUNNING
            kept.save()
            self.say(f"{self.ticket.start}: the program was restarted; the container goes on")
        return None

    def _carry_out(self, kept: Record) -> End | None:
        starting = Starting(self.machine, self.ticket, kept, self.say, self._must_stop)
        if kept.phase != record.RUNNING:
            stopped = self._stopped()
            if stopped is not None:
                return stopped
            self.say(f"{self.ticket.start} begins on {self.machine.me.node} with {self.ticket.image}")
            self.machine.cluster.put_state(self.ticket.number, kept.state)
            starting.begin()
        forwarder = None
        if self.stream is not None:
            forwarder = Forwarder(self.stream, starting.container, kept.folder / "delivered.json")
            forwarder.start()
        threading.Thread(target=commands.wait_for_container, args=(starting.container, self.wake), daemon=True).start()
        end = self._watch(starting.container)
        if end is not None and forwarder is not None:
            forwarder.finish()
        return end

    def _watch(self, name: str) -> End | None:
        """Waits for the container's end, or stops it. None: this program leaves, and the container goes on."""
        while True:
            container = self._container()
            if container is None:
                return self._reason or End(FAILED, None, _GONE)
            if container.code is not None:
                return self._reason or _end_of_container(container)
            self._reason = self._reason or self._stopped()
            if self._reason is not None and not self._told_to_end:
                self._stop(name, self._reason)
                continue
            if self.leaving():
                return None
            self.tick()
            if self.pause(_LOOK_SECONDS):
                self._looked = self._asked = -math.inf

    def _stop(self, name: str, reason: End) -> None:
        self.say(f"{self.ticket.start} is to end: {reason.details}")
        try:
            commands.stop_container(name, reason.grace)
            self._told_to_end = True
        except commands.CommandError as error:
            self.machine.say(f"docker does not stop the container: {error}")
            self.pause(_LOOK_SECONDS)

    def _must_stop(self) -> bool:
        """Whether the waits before the container's start have to end. They call this at every turn."""
        self.tick()
        self._reason = self._reason or self._stopped()
        return self._reason is not None or self.leaving()

    def _stopped(self) -> End | None:
        """Why the start should end now; None if it should not."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            try:
                if self.machine.cluster.canceled(self.ticket.number):
                    return End(CANCELED, None, _CANCELED)
            except StoreError as error:
                self.machine.say(f"the bucket does not say whether {self.ticket.start} is canceled: {error}")
        if now - self._asked >= _SPOT_SECONDS:
            self._asked = now
            notice = spot_interruption(self.machine.identity.metadata)
            if notice:
                return End(FAILED, None, notice, _SPOT_GRACE_SECONDS)
        limit = self.ticket.maximum_minutes
        if limit and time.time() > self._began + limit * 60:
            return End(FAILED, None, f"the maximum runtime of {limit:g} minutes is over")
        return None

    def _container(self) -> commands.Container | None:
        """Inspects the container. Retries, because docker itself may be restarting."""
        name = container_name(self.machine.settings.job, self.ticket.number)
        for number in range(_DOCKER_TRIES):
            try:
                return commands.inspect_container(name)
            except commands.CommandError as error:
                if number == _DOCKER_TRIES - 1:
                    raise MissingError(f"docker does not answer what became of the container: {error}") from None
                self.pause(1.0)
        return None

    def _end(self, kept: Record, end: End) -> None:
        if kept.phase != record.RUNNING:
            # A state without a port tells the other nodes that this one will not start.
            kept.state.pop("sshPort", None)
        kept.phase = record.ENDED
        kept.state.update(state=end.state, finishedAt=format_rfc3339(time.time()))
        kept.state.update(
            {key: value for key, value in (("code", end.code), ("details", end.details)) if value or value == 0}
        )
        self.say(f"{self.ticket.start} has ended on {self.machine.me.node}: {end.state} {end.details}".rstrip())
        kept.save()


def remove_ended_start(machine: Machine, kept: Record) -> None:
    """Removes the container of an ended start, and the files that were made for it: no secret stays on the disk."""
    try:
        commands.remove_container(container_name(machine.settings.job, kept.number))
    except commands.CommandError as error:
        if "No such" not in str(error):
            machine.say(f"the container of start {kept.number} stays: {error}")
    clean_start(machine.paths, kept)


class _ConsoleAndLog(LinePrinter):
    """Prints on the machine's console, and into the run's log."""

    def __init__(self, life: Life) -> None:
        super().__init__()
        self._life = life

    def __call__(self, text: str) -> None:
        self._life.machine.say(text)
        if self._life.stream is not None:
            say_into(self._life.stream, f"[machine] {self._life.machine.say.masked(text)}")


def _end_of_container(container: commands.Container) -> End:
    if container.code == 0:
        return End(SUCCEEDED, 0)
    why = "the machine's memory was used up" if container.out_of_memory else container.error
    return End(
        FAILED, container.code, f"ended with {exits.describe_exit(container.code or 0)}{f': {why}' if why else ''}"
    )
