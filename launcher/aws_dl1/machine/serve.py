# SPDX-License-Identifier: Apache-2.0
"""Serves the queue until the machine ends: runs one start after the other, and stops the machine when it is idle."""

from __future__ import annotations

import http.client
import math
import random
import select
import time
from dataclasses import dataclass, field
from typing import Any

from launcher.aws_dl1.fetch import AwsError
from launcher.aws_dl1.machine import commands, disks, equipment, record, ssh
from launcher.aws_dl1.machine.cluster import Queue, format_rfc3339
from launcher.aws_dl1.machine.facts import read_json_object, spot_interruption, write_json
from launcher.aws_dl1.machine.life import End, Life, remove_ended_start
from launcher.aws_dl1.machine.starting import Machine, has_container_files, in_progress, switch_program
from launcher.aws_dl1.machine.tickets import CANCELED, FAILED, IN_PROGRESS, Ticket, next_turn
from launcher.aws_dl1.machine.wake import WakePipe
from launcher.aws_dl1.services import read_aws_secret
from launcher.errors import MissingError
from launcher.stores import StoreError
from launcher.supervise import Signals

# How often it polls the queue, because the command that wakes it may be lost; and how often while nodes wait.
_LOOK_SECONDS, _WAITING_SECONDS = 20.0, 1.0
_RENEW_SECONDS, _SILENT_SECONDS = 60.0, 600.0
_SECRET_SECONDS = 300.0
_LATE_SECONDS = 2.0
_UNFIT_SECONDS, _DOWN_SECONDS, _SWEEP_SECONDS = 30.0, 120.0, 15.0
PREPARING, READY, BUSY, STOPPING, UNFIT = "preparing", "ready", "busy", "stopping", "failed"


@dataclass
class Server:
    """The program's main loop."""

    machine: Machine
    wake_pipe: WakePipe
    signals: Signals
    _state: str = field(default=PREPARING, init=False)
    _reason: str = field(default="", init=False)
    _reported: float = field(default=-math.inf, init=False)
    _began: float = field(default_factory=time.monotonic, init=False)
    _idle_since: float = field(default_factory=time.monotonic, init=False)
    _since: str = field(default="", init=False)
    _swept: float = field(default=0.0, init=False)
    _woken: bool = field(default=False, init=False)

    def run(self) -> int:
        """Runs until a signal comes."""
        self.signals.target = lambda _: self.wake_pipe.wake()
        self._since = self._came_up()
        for kept in record.ended_records(self.machine.paths):
            if has_container_files(kept.folder):
                remove_ended_start(self.machine, kept)
        self._report(PREPARING)
        disks.prepare_disks(self.machine.paths, self.machine.say)
        while not self.signals.ended() and not self._prepare():
            self._turn_unfit()
        while not self.signals.ended():
            try:
                if self._state == STOPPING:
                    # The machine should be down before this ends. If it is not, somebody prevented it.
                    self._pause(_DOWN_SECONDS)
                    self._report(READY)
                else:
                    self._turn()
            except StoreError as error:
                self._without_bucket(error)
                self._pause(_WAITING_SECONDS)
        return 0

    def _came_up(self) -> str:
        """When this program first began in this boot."""
        file = self.machine.paths.run / "since.json"
        kept = read_json_object(file)
        if kept is None:
            kept = {"since": format_rfc3339(time.time())}
            write_json(file, kept)
        return str(kept["since"])

    def _prepare(self) -> bool:
        """Whether the machine can take runs. Its report says what it lacks, so nobody waits in vain."""
        machine = self.machine
        while True:
            checked = equipment.check_equipment(machine.settings, machine.paths)
            for row in checked:
                machine.say(f"{row.what}: {row.problem or 'there'}")
            problem = equipment.equipment_problems(checked)
            late = time.monotonic() - self._began < machine.settings.accelerator.late
            if not problem or not late or self.signals.ended():
                break
            self._pause(_LATE_SECONDS)
        if not problem:
            try:
                self._install(self._key())
            except MissingError as error:
                problem = str(error)
        self._report(UNFIT if problem else READY, problem)
        return not problem

    def _install(self, private: str) -> None:
        machine = self.machine
        if private.strip() != machine.ssh_key.private.strip():
            machine.ssh_key = ssh.key_pair(private, machine.paths.run)
            ssh.install_ssh_files(machine.paths.home / ".ssh", machine.ssh_key, ssh.ssh_config({}, inside=False))

    def _renew_key(self) -> None:
        """Reads the key again before each start, so that a rotated key needs no new machine."""
        try:
            self._install(read_aws_secret(self.machine.identity, self.machine.settings.ssh_secret))
        except (AwsError, OSError, http.client.HTTPException, ValueError, KeyError, MissingError) as error:
            self.machine.say(f"the SSH key cannot be read again, so this start uses the previous one: {error}")

    def _key(self) -> str:
        """Reads the key. Retries, because a role made together with the machine comes into force minutes later."""
        until, pause = time.monotonic() + _SECRET_SECONDS, 1.0
        name = self.machine.settings.ssh_secret
        while True:
            try:
                return read_aws_secret(self.machine.identity, name)
            except (AwsError, OSError, http.client.HTTPException, ValueError, KeyError) as error:
                if time.monotonic() > until or self.signals.ended():
                    raise MissingError(f"the SSH key cannot be read from the secret {name}: {error}") from None
                self.machine.say(f"the SSH key cannot be read yet: {error}")
            self._pause(pause)
            pause = min(pause * 2, 15.0)

    def _turn_unfit(self) -> None:
        """One turn of a machine that cannot take runs. The next run fails, because it would otherwise wait for ever."""
        try:
            self._renew()
            found = self.machine.cluster.look()
            now = next_turn(self.machine.me.node, found.tickets, found.names())
            if now.ticket is not None and not now.waits_for:
                self._refuse(now.ticket)
            self._stop_when_idle(found, frozenset())
        except StoreError as error:
            self._without_bucket(error)
        self._pause(_UNFIT_SECONDS)

    def _refuse(self, ticket: Ticket) -> None:
        self._put_end(ticket, End(FAILED, None, f"this machine is not fit for runs: {self._reason}"))

    def _put_end(self, ticket: Ticket, end: End) -> None:
        now = time.time()
        self.machine.say(f"{ticket.start}: {end.state}, {end.details}")
        self.machine.cluster.put_state(
            ticket.number,
            {
                **in_progress(self.machine.me.instance, now),
                "state": end.state,
                "details": end.details,
                "finishedAt": format_rfc3339(now),
            },
        )

    def _turn(self) -> None:
        """Reads the queue once, and does what it asks for."""
        self._renew()
        found = self.machine.cluster.look()
        self._cancel(found, 0)
        now = next_turn(self.machine.me.node, found.tickets, found.names())
        if now.ticket is None:
            self._stop_when_idle(found, now.goes_on - {self.machine.me.node})
            self._pause(_WAITING_SECONDS if now.goes_on else self._until_idle())
            return None
        if now.ticket.number in found.canceled and self.machine.me.node not in found.states.get(now.ticket.number, {}):
            return None
        if now.waits_for:
            waiting = ", ".join(f"{node} (start {number})" for node, number in sorted(now.waits_for.items()))
            self._report(READY, f"start {now.ticket.number} waits for the end of {waiting}")
            self._stop_when_idle(found, frozenset(now.waits_for))
            self._pause(_WAITING_SECONDS)
            return None
        return self._serve(now.ticket, found)

    def _serve(self, ticket: Ticket, found: Queue) -> None:
        mine = found.states.get(ticket.number, {}).get(self.machine.me.node, {})
        switch_program(self.machine, ticket)
        self._report(BUSY, f"start {ticket.number}")
        self._renew_key()
        life = Life(
            self.machine, ticket, self._pause, self.wake_pipe.wake, self.signals.ended, lambda: self._meanwhile(ticket)
        )
        if life.run(mine.get("state") == IN_PROGRESS):
            self._idle_since = time.monotonic()
            self._report(READY)

    def _meanwhile(self, current: Ticket) -> None:
        """Called while a start runs: renews the report, and ends later starts that were canceled meanwhile."""
        self._renew()
        if not self._woken and time.monotonic() - self._swept < _SWEEP_SECONDS:
            return
        self._woken, self._swept = False, time.monotonic()
        try:
            self._cancel(self.machine.cluster.look(), current.number)
        except StoreError as error:
            self.machine.say(f"the bucket does not answer: {error}")

    def _cancel(self, found: Queue, current: int) -> None:
        """Ends starts that were canceled before they began here."""
        for ticket in found.tickets:
            node = self.machine.me.node
            begun = node in found.states.get(ticket.number, {}) or ticket.number == current
            if ticket.number in found.canceled and node in ticket.names and not begun:
                self._put_end(ticket, End(CANCELED, None, "was canceled before it began"))

    def _stop_when_idle(self, found: Queue, others: frozenset[str]) -> None:
        """Stops a machine that has had no run for long, to save money. It stays up while `others` have runs, unless
        they have sent no report for long."""
        minutes = self.machine.settings.stop_when_idle_minutes
        if not minutes or self._state == STOPPING:
            return None
        if any(not self.machine.cluster.silent(node, _SILENT_SECONDS) for node in others):
            self._idle_since = time.monotonic()
            return None
        if time.monotonic() - self._idle_since < minutes * 60:
            return None
        unfit = self._state == UNFIT
        self._report(STOPPING, f"no run for {minutes:g} minutes")
        # A ticket from before this report counts on this machine, so it must not stop. Later ones see the report.
        last = self.machine.cluster.look()
        known = {ticket.number for ticket in found.tickets}
        if not unfit and any(ticket.number not in known for ticket in last.tickets):
            return self._report(READY)
        self.machine.say(f"no run for {minutes:g} minutes: the machine stops; the next run starts it again")
        try:
            commands.run_program(["shutdown", "-h", "now"])
        except commands.CommandError as error:
            self.machine.say(f"the machine cannot stop: {error}")
            self._report(READY, str(error))
            self._idle_since = time.monotonic()

    def _without_bucket(self, error: StoreError) -> None:
        """Stops an idle machine that cannot reach its bucket, too: it can take no run."""
        self.machine.say(f"the bucket does not answer: {error}")
        minutes = self.machine.settings.stop_when_idle_minutes
        idle = time.monotonic() - self._idle_since
        if not minutes or idle < minutes * 60 or record.goes_on(self.machine.paths, self.machine.boot):
            return
        self.machine.say(f"no run for {minutes:g} minutes, and no bucket: the machine stops")
        try:
            commands.run_program(["shutdown", "-h", "now"])
        except commands.CommandError as refused:
            self.machine.say(f"the machine cannot stop: {refused}")

    def _until_idle(self) -> float:
        """How long to wait until the next look at the queue."""
        minutes = self.machine.settings.stop_when_idle_minutes
        left = self._idle_since + minutes * 60 - time.monotonic() if minutes else _LOOK_SECONDS
        return min(_LOOK_SECONDS, max(left, _WAITING_SECONDS))

    def _renew(self) -> None:
        if time.monotonic() - self._reported >= _RENEW_SECONDS:
            notice = spot_interruption(self.machine.identity.metadata)
            self._report(self._state, notice or self._reason)

    def _report(self, state: str, reason: str = "") -> None:
        """Puts the report if it has changed, and once a minute if not."""
        if (state, reason) == (self._state, self._reason) and time.monotonic() - self._reported < _RENEW_SECONDS:
            return
        if reason != self._reason or state != self._state:
            self.machine.say(f"{state}: {reason}" if reason else state)
        self._state, self._reason, self._reported = state, reason, time.monotonic()
        report: dict[str, Any] = {
            "instance": self.machine.me.instance, "boot": self.machine.boot, "state": state, "reason": reason,
            "at": format_rfc3339(time.time()), "address": self.machine.me.address, "since": self._since,
        }  # fmt: skip
        try:
            self.machine.cluster.put_report(report)
        except StoreError as error:
            self.machine.say(f"the report cannot be put into the bucket: {error}")

    def _pause(self, seconds: float) -> bool:
        """Sleeps until this program is woken, a signal comes, or the time is over. Returns whether it was woken."""
        # Jitter: the machines of a cluster should not poll at the same moments.
        jittered = seconds * random.uniform(0.9, 1.1)
        woken, _, _ = select.select([self.wake_pipe.number], [], [], jittered)
        self._woken = self._woken or bool(woken)
        self.wake_pipe.drain()
        return bool(woken)
