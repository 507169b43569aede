# SPDX-License-Identifier: Apache-2.0
"""Runs instances of the local AWS on the hosts: boots and stops them, sends them commands, and reports their states."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from localcloud.aws.hosts.machine.channels import REPORT
from localcloud.aws.hosts.machine_assignments import build_machine_assignment, command_file
from localcloud.aws.hosts.machine_network import LatestNetwork
from localcloud.aws.machines import Machine, MachineCommand, MachineReports
from localcloud.hosts.assignment import Assignment, CannotStartError, Dispatcher, RunVerdict
from localcloud.hosts.fabric import Fabric
from localcloud.hosts.run_hosts import Hosts

_REPORT = REPORT.encode()
_ID = re.compile(r"i-[0-9a-f]{17}")
_LONGEST_OUTPUT = 24_000
log = logging.getLogger("localcloud")


@dataclass
class _Instance:
    """An instance that runs or shuts down. `then`: what follows when its processes have ended."""

    machine: Machine
    then: str = ""  # stop, terminate, boot; "" if nobody requested the end
    agent_ready: bool = False
    commands: dict[str, MachineCommand] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    printed: dict[tuple[str, str], str] = field(default_factory=dict)
    shutdown_request: str = ""  # of the instance itself: halt or reboot


class Instances:
    """Implements `localcloud.aws.machines.Machines`."""

    def __init__(self, folder: Path, fabric: Fabric, reports: MachineReports) -> None:
        self.hosts = Hosts(folder, fabric, _Dispatcher(self))
        self._reports = reports
        self._loop = asyncio.get_running_loop()
        self._running: dict[str, _Instance] = {}
        self._network = LatestNetwork(reports)
        self._renewing: set[asyncio.Task[None]] = set()  # the event loop has only weak references

    def later(self, step: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(step)

    async def stop(self) -> None:
        await self.hosts.stop()

    def has(self, instance: str) -> bool:
        """Whether the instance ran here and has not been terminated."""
        return bool(_ID.fullmatch(instance)) and self.hosts.folder(instance).is_dir()

    async def evidence(self, instance: str) -> Mapping[str, Any]:
        return await self.hosts.evidence(instance)

    # -- called by the local AWS, on the event loop

    def started(self, machine: Machine) -> None:
        if machine.id in self._running:
            # A start followed a stop at once, and the instance is still shutting down.
            self._running[machine.id].machine, self._running[machine.id].then = machine, "boot"
            return
        self._running[machine.id] = _Instance(machine)
        self.hosts.submit(machine.id)

    def stopped(self, instance: str) -> None:
        self._end(instance, "stop")

    def terminated(self, instance: str) -> None:
        self._end(instance, "terminate")

    def _end(self, instance: str, then: str) -> None:
        if running := self._running.get(instance):
            running.then = then
            self.hosts.cancel(instance)
        elif then == "terminate":
            self._forget(instance)

    def rebooted(self, machine: Machine) -> None:
        if running := self._running.get(machine.id):
            running.machine, running.then = machine, "boot"
            self.hosts.cancel(machine.id)

    def send(self, command: MachineCommand) -> None:
        running = self._running.get(command.instance)
        if running is None:
            return
        running.commands[command.id] = command
        if running.agent_ready:
            self._write_command(command)

    def _write_command(self, command: MachineCommand) -> None:
        content = {
            "id": command.id, "lines": list(command.lines), "timeoutSeconds": command.timeout_seconds,
            "folder": command.folder,
        }  # fmt: skip
        path = command_file(self.hosts.folder(command.instance), command.id)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(content))
        draft.chmod(0o644)
        draft.replace(path)

    def cancel(self, command: str, instance: str) -> None:
        running = self._running.get(instance)
        if running is None or command not in running.commands:
            return
        if command in running.begun:
            command_file(self.hosts.folder(instance), command, "cancel").touch(0o644)
        else:
            running.commands.pop(command)

    def network_changed(self) -> None:
        self._renewing.add(task := self._loop.create_task(self._renew_network()))
        task.add_done_callback(self._renewing.discard)

    async def _renew_network(self) -> None:
        """Reads all rules and routes again."""
        try:
            network = await self._network.read()
        except Exception:
            log.exception("the rules and routes in force could not be read")
            return
        if network is self._network.now:
            self.hosts.network_changed()

    # -- called by the hosts

    async def assignment(self, run: str, folder: Path) -> Assignment:
        machine = self._running[run].machine
        facts = (await self._network.read(machine)).subnets.get(machine.subnet)
        if facts is None:
            raise CannotStartError(f"The subnet {machine.subnet} is gone")
        # Rules of other instances may name its groups, which now have a new member.
        self.hosts.network_changed()
        lines = partial(self._read_reports, run)
        return await build_machine_assignment(machine, folder, facts, lambda: self._network.now.reach(machine), lines)

    def ended(self, run: str, verdict: RunVerdict) -> None:
        running = self._running.pop(run)
        for command in running.commands.values():
            self._reports.command_ended(command.id, run, 1, "", "The instance shut down before the command ended")
        then = running.then or ("boot" if running.shutdown_request == "reboot" else "")
        if then == "boot":
            self.started(running.machine)
        elif then == "terminate":
            self._forget(run)
        elif not then and running.shutdown_request:
            self._reports.ended_itself(run)
        elif not then:
            reason = verdict.details or "its first program ended"
            log.warning("instance %s ended: %s", run, reason)
            self._reports.failed(run, reason)

    def _forget(self, instance: str) -> None:
        shutil.rmtree(self.hosts.folder(instance), ignore_errors=True)

    def _read_reports(self, instance: str, lines: Sequence[bytes]) -> None:
        for line in lines:
            if line.startswith(_REPORT) and (running := self._running.get(instance)):
                try:
                    report = json.loads(line[len(_REPORT) :])
                    self._apply_report(instance, running, report)
                except (ValueError, KeyError, TypeError, RecursionError):
                    log.warning("instance %s sent an invalid report", instance)

    def _apply_report(self, instance: str, running: _Instance, report: Mapping[str, Any]) -> None:
        """Applies a report of a machine. Root on the machine can send any report, so only the instance's own commands
        count."""
        event, command = str(report["event"]), str(report.get("id", ""))
        if event == "running":
            self._reports.running(instance)
        elif event == "agent":
            running.agent_ready = True
            self._reports.agent_ready(instance)
            for waiting in running.commands.values():
                self._write_command(waiting)
        elif event == "ended":
            running.shutdown_request = str(report["by"])
        elif command not in running.commands:
            return
        elif event == "began":
            running.begun.add(command)
            self._reports.command_began(command, instance)
        elif event == "printed":
            kind = (command, str(report["stream"]))
            running.printed[kind] = (running.printed.get(kind, "") + str(report["text"]))[:_LONGEST_OUTPUT]
        elif event == "done":
            del running.commands[command]
            output, errors = (running.printed.pop((command, stream), "") for stream in ("output", "errors"))
            code = report["code"]
            self._reports.command_ended(command, instance, None if code is None else int(code), output, errors)


class _Dispatcher(Dispatcher):
    """A running instance is a run of the hosts. After a restart, the local AWS restarts its instances. Their disks are
    reused, however an earlier boot ended."""

    def __init__(self, instances: Instances) -> None:
        self._instances = instances

    async def assignment(self, run: str, folder: Path) -> Assignment:
        return await self._instances.assignment(run, folder)

    def ended(self, run: str, verdict: RunVerdict, folder: Path) -> None:
        self._instances.ended(run, verdict)
