# SPDX-License-Identifier: Apache-2.0
"""Runs systemd services as `systemctl` and their unit files say. It supports only what user data uses."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
from asyncio.subprocess import Process
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.aws.hosts.machine import channels
from localcloud.aws.hosts.machine.channels import Answer

FOLDERS = (Path("/etc/systemd/system"), Path("/run/systemd/system"))
WANTED = FOLDERS[0] / "multi-user.target.wants"
_NOT_ACTIVE, _UNKNOWN = 3, 5
_STOP_SECONDS = 10.0
# `Restart=` -> whether a service is restarted after a success, and after a failure.
_RESTARTS = {
    "no": (False, False), "on-success": (True, False), "on-failure": (False, True), "on-abnormal": (False, True),
    "on-abort": (False, True), "on-watchdog": (False, False), "always": (True, True),
}  # fmt: skip
# Services of a real image that this machine provides in another way.
_BUILT_IN = ("docker", "ssh", "sshd", "amazon-ssm-agent", "containerd", "cloud-init")
Section = Mapping[str, Sequence[str]]


@dataclass
class Service:
    """A service that was started. `wanted`: whether it should run, which is false after a stop."""

    name: str
    keys: Section
    task: asyncio.Task[None] | None = None
    process: Process | None = None
    wanted: bool = True
    state: str = "activating"


def read_unit(text: str) -> Mapping[str, Section]:
    """The sections and keys of a unit file. A key may repeat. An empty value removes its earlier values."""
    sections: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    name = ""
    for line in text.replace("\\\n", " ").splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1]
        elif line and line[0] not in "#;" and "=" in line:
            key, _, value = (part.strip() for part in line.partition("="))
            sections[name][key] = [*sections[name][key], value] if value else []
    return sections


class Units:
    """All services of one machine."""

    def __init__(self, environment: Mapping[str, str], shut_down: Callable[[str], None]) -> None:
        self._environment = environment
        self._shut_down = shut_down
        self._services: dict[str, Service] = {}

    async def ask(self, request: Mapping[str, Any]) -> Answer:
        """Executes a `systemctl` command."""
        words = [word for word in request["arguments"] if not word.startswith("-")]
        verb = words[0] if words else "list-units"
        names = [name if "." in name else f"{name}.service" for name in words[1:]]
        if verb in ("poweroff", "halt", "reboot"):
            self._shut_down("reboot" if verb == "reboot" else "halt")
            return Answer()
        if verb in ("daemon-reload", "daemon-reexec", "list-units", "reset-failed"):
            return Answer(output="".join(f"{one.name} {one.state}\n" for one in self._services.values()))
        if verb not in _VERBS:
            return Answer(1, errors=f"systemctl: this stand-in has no `{verb}`\n")
        answers = [await _VERBS[verb](self, name) for name in names if not _is_built_in(name)]
        if "--now" in request["arguments"] and verb in ("enable", "disable"):
            act = self._start if verb == "enable" else self._stop
            answers += [await act(name) for name in names if not _is_built_in(name)]
        answers += [Answer(output="active\n") for name in names if _is_built_in(name) and verb == "is-active"]
        return Answer(
            max((one.code for one in answers), default=0),
            "".join(one.output for one in answers),
            "".join(one.errors for one in answers),
        )

    async def start_enabled(self) -> None:
        for link in sorted(WANTED.glob("*.service")) if WANTED.is_dir() else ():
            await self._start(link.name)

    async def stop_all(self) -> None:
        await asyncio.gather(*(self._stop(name) for name in list(self._services)))

    async def _start(self, name: str) -> Answer:
        running = self._services.get(name)
        if running and running.task and not running.task.done():
            return Answer()
        file = _unit_file(name)
        if file is None:
            return Answer(_UNKNOWN, errors=f"Unit {name} not found.\n")
        keys = read_unit(file.read_text(errors="replace")).get("Service", {})
        if not keys.get("ExecStart"):
            return Answer(1, errors=f"{name} has no ExecStart\n")
        service = self._services[name] = Service(name, keys)
        service.task = asyncio.create_task(self._keep_running(service))
        return Answer()

    async def _stop(self, name: str) -> Answer:
        service = self._services.get(name)
        if service is None or service.task is None:
            return Answer()
        service.wanted = False
        if process := service.process:
            _signal_unit(process, signal.SIGTERM, _last_value(service.keys, "KillMode") == "process")
        with suppress(TimeoutError):
            async with asyncio.timeout(
                min(_STOP_SECONDS, _parse_time_span(_last_value(service.keys, "TimeoutStopSec"), 90.0))
            ):
                await asyncio.shield(service.task)
        if not service.task.done():
            if process := service.process:
                _signal_unit(process, signal.SIGKILL, one=False)
            service.task.cancel()
        service.state = "inactive"
        return Answer()

    async def _restart(self, name: str) -> Answer:
        await self._stop(name)
        return await self._start(name)

    async def _enable(self, name: str) -> Answer:
        file = _unit_file(name)
        if file is None:
            return Answer(1, errors=f"Unit {name} does not exist.\n")
        WANTED.mkdir(parents=True, exist_ok=True)
        link = WANTED / name
        if not link.is_symlink():
            link.symlink_to(file)
        return Answer()

    async def _disable(self, name: str) -> Answer:
        (WANTED / name).unlink(missing_ok=True)
        return Answer()

    async def _is_active(self, name: str) -> Answer:
        state = self._services[name].state if name in self._services else "inactive"
        return Answer(0 if state == "active" else _NOT_ACTIVE, f"{state}\n")

    async def _is_enabled(self, name: str) -> Answer:
        enabled = (WANTED / name).is_symlink()
        return Answer(0 if enabled else 1, "enabled\n" if enabled else "disabled\n")

    async def _keep_running(self, service: Service) -> None:
        after_success, after_failure = _RESTARTS.get(_last_value(service.keys, "Restart"), (False, False))
        while service.wanted:
            code = await self._run(service)
            given_up = str(code) in _last_value(service.keys, "RestartPreventExitStatus").split()
            again = (after_failure if code else after_success) and not given_up
            service.state = "failed" if code else "inactive"
            if not (service.wanted and again):
                return
            service.state = "activating"
            await asyncio.sleep(_parse_time_span(_last_value(service.keys, "RestartSec"), 0.1))

    async def _run(self, service: Service) -> int:
        environment = self._variables(service.keys)
        for line in (*service.keys.get("ExecStartPre", ()), *service.keys["ExecStart"]):
            # `-` before a command: its failure is ignored. Other prefixes have no effect here.
            words = shlex.split(line.lstrip("-@:+!"))
            try:
                service.process = process = await asyncio.create_subprocess_exec(
                    *words, env=environment, cwd=_last_value(service.keys, "WorkingDirectory") or "/",
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                channels.print_on_console(service.name, f"{words[0]}: {error.strerror}")
                return 1
            service.state = "active"
            printed = asyncio.create_task(channels.pass_on(service.name, process.stdout)) if process.stdout else None
            code = await process.wait()
            if printed:  # a child process that still runs may hold the output open
                await asyncio.wait([printed], timeout=1.0)
            if code and not line.startswith("-"):
                channels.print_on_console(service.name, f"{words[0]} ended with {code}")
                return code
        return 0

    def _variables(self, keys: Section) -> dict[str, str]:
        variables = dict(self._environment)
        for name in keys.get("EnvironmentFile", ()):
            with suppress(FileNotFoundError):
                variables |= read_variables(Path(name.lstrip("-")).read_text(errors="replace"))
        for text in keys.get("Environment", ()):
            variables |= dict(pair.split("=", 1) for pair in shlex.split(text) if "=" in pair)
        return variables


def read_variables(text: str) -> dict[str, str]:
    """The variables of a file such as `/etc/environment`."""
    rows = (line.strip() for line in text.splitlines())
    pairs = (row.partition("=") for row in rows if row and row[0] not in "#;")
    return {name.strip(): value.strip().strip("\"'") for name, sign, value in pairs if sign}


def _signal_unit(process: Process, number: int, one: bool) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, number) if one else os.killpg(process.pid, number)


def _unit_file(name: str) -> Path | None:
    return next((folder / name for folder in FOLDERS if (folder / name).is_file()), None)


def _is_built_in(name: str) -> bool:
    return name.endswith(".target") or (name.removesuffix(".service") in _BUILT_IN and _unit_file(name) is None)


def _last_value(keys: Section, name: str) -> str:
    return (list(keys.get(name, ())) or [""])[-1]


def _parse_time_span(text: str, usual: float) -> float:
    """A time span in seconds: `5`, `5s`, `2min`."""
    for unit, factor in (("min", 60.0), ("ms", 0.001), ("s", 1.0), ("", 1.0)):
        if text.endswith(unit):
            try:
                return float(text.removesuffix(unit)) * factor
            except ValueError:
                return usual
    return usual


_VERBS = {
    "start": Units._start, "stop": Units._stop, "restart": Units._restart, "try-restart": Units._restart,
    "enable": Units._enable, "disable": Units._disable, "is-active": Units._is_active, "status": Units._is_active,
    "is-enabled": Units._is_enabled,
}  # fmt: skip
