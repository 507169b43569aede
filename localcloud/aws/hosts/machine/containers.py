# SPDX-License-Identifier: Apache-2.0
"""Containers of a machine without docker. A container is a process that shares the machine's files, network and users.
A local environment stands in for its image."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from catalog.environments import EnvironmentFacts, Need, choose_environment, environment_facts
from catalog.imports import imported_modules
from localcloud.aws.hosts.machine import channels
from localcloud.aws.hosts.machine.channels import PACKAGE, PROGRAMS, START, Answer, ContainerState
from localcloud.aws.hosts.machine.docker_options import OptionsError, RunOptions, parse_run

_LAUNCH = "TRAINYARD_LAUNCH"
_UNUSABLE, _NOT_STARTED, _ENDED_BY_KILL = 125, 127, 137
_STOP_SECONDS = 10.0
# The limit for files of the working directory (launcher/stray_files.py). Here it is a quarter of the free disk.
_KEEP_VARIABLE, _PARTS_OF_DISK = "TRAINYARD_KEEP_MEGABYTES", 4
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")
# The reaper runs with the interpreter of the machine's programs, not with the container's.
_REAPER = (sys.executable, "-I", "-S", "-c", START, PROGRAMS, f"{PACKAGE}.reaper")
_WORDS = "trainyard: this machine is {words}. The environment `{environment}` stands in for the image {image}{instead}."


@dataclass
class _Running:
    state: ContainerState
    process: Process
    task: asyncio.Task[None] = field(init=False)


def docker_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


class Containers:
    """All containers of one machine."""

    def __init__(
        self, environment: Mapping[str, str], environments: Sequence[Mapping[str, Any]], stands_for: Mapping[str, Any]
    ) -> None:
        self._environment = environment
        self._environments = environments
        self._stands_for = stands_for
        self._running: dict[str, _Running] = {}
        self._count = 0

    def mark_ended(self) -> None:
        """Marks containers as ended that ran when the machine shut down."""
        for file in channels.CONTAINERS.glob("*.json") if channels.CONTAINERS.is_dir() else ():
            state = channels.read_container_state(file.stem)
            if state and state.status == "running":
                state.status, state.code, state.finished = "exited", 255, docker_time()
                state.write()

    async def ask(self, request: Mapping[str, Any]) -> Answer:
        """Executes `docker run|stop|kill|rm`."""
        verb, *words = request["arguments"]
        channels.CONTAINERS.mkdir(parents=True, exist_ok=True)
        if verb == "run":
            return await self._run(words)
        names = [word for word in words if not word.startswith("-") and not word.isdigit()]
        answers = [await self._change(verb, name, "-f" in words or "--force" in words) for name in names]
        failed = next((one for one in answers if one.code), None)
        return failed or Answer(output="".join(f"{name}\n" for name in names))

    async def stop_all(self) -> None:
        await asyncio.gather(*(self._stop(each) for each in list(self._running.values())))

    async def _change(self, verb: str, name: str, force: bool) -> Answer:
        state, running = channels.read_container_state(name), self._running.get(name)
        if state is None:
            return Answer(1, errors=f"Error response from daemon: No such container: {name}\n")
        if verb == "rm":
            if running and not force:
                return Answer(1, errors=f"Error response from daemon: container {name} is running\n")
            if running:
                await self._stop(running, at_once=True)
            for file in (channels.state_file(name), channels.log_file(name)):
                file.unlink(missing_ok=True)
        elif running:
            await self._stop(running, at_once=verb == "kill")
        return Answer()

    async def _run(self, words: Sequence[str]) -> Answer:
        try:
            options = parse_run(words)
            if options.runtime and options.runtime not in self._stands_for["runtimes"]:
                raise OptionsError(f"unknown or invalid runtime name: {options.runtime}")
            variables, interpreter = self._variables(options)
            words = _WORDS.format(environment=interpreter, image=options.image, **self._stands_for)
            notes = [words, *options.ignored()]
            _show_volumes(options.volumes)
        except OptionsError as error:
            return Answer(_UNUSABLE, errors=f"docker: {error}\n")
        self._count += 1
        name = options.name or f"container-{self._count}"
        if not _NAME.fullmatch(name):
            return Answer(_UNUSABLE, errors=f"docker: invalid container name {name!a}\n")
        if channels.read_container_state(name):
            return Answer(_UNUSABLE, errors=f"docker: Conflict. The container name {name} is already in use\n")
        state = ContainerState(name, options.image, options.command, removes_itself=options.removes_itself)
        with channels.log_file(name).open("w") as log:
            for note in notes:
                log.write(f"{docker_time()} {note}\n")
        try:
            process = await asyncio.create_subprocess_exec(
                *_REAPER, *options.command, env=variables, cwd=options.folder or "/", stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            channels.log_file(name).unlink()
            return Answer(_NOT_STARTED, errors=f"docker: {options.command[0]}: {error.strerror}\n")
        state.status, state.pid, state.started = "running", process.pid, docker_time()
        state.write()
        running = self._running[name] = _Running(state, process)
        running.task = asyncio.create_task(self._follow(running))
        return Answer(output=f"{name}\n") if options.detached else Answer(follow=name)

    async def _follow(self, running: _Running) -> None:
        """Writes a container's output to its log, with the time, until the container ends."""
        state, process = running.state, running.process
        with channels.log_file(state.name).open("a") as log:
            if process.stdout:
                async for line in channels.output_lines(process.stdout):
                    log.write(f"{docker_time()} {line}\n")
                    log.flush()
        code = await process.wait()
        state.status, state.finished = "exited", docker_time()
        state.code = 128 - code if code < 0 else code
        state.write()
        self._running.pop(state.name, None)
        if state.removes_itself:
            channels.state_file(state.name).unlink(missing_ok=True)

    async def _stop(self, running: _Running, at_once: bool = False) -> None:
        for number in (signal.SIGKILL,) if at_once else (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, FileNotFoundError):
                if number == signal.SIGTERM:
                    os.kill(running.process.pid, number)
                else:
                    _kill_all(running.process.pid)
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await asyncio.shield(running.task)
                    return

    def _variables(self, options: RunOptions) -> tuple[dict[str, str], str]:
        """The variables of a container, and the name of the environment that stands in for its image."""
        chosen = self._choose(options)
        variables = {
            "HOME": "/root", "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", **chosen["variables"],
            _KEEP_VARIABLE: str(shutil.disk_usage(channels.CONTAINERS).free // _PARTS_OF_DISK // 1_000_000),
            "PATH": f"/.trainyard/bin:{chosen['path']}:/usr/sbin:/sbin", **options.environment,
        }  # fmt: skip
        return variables, str(chosen["name"])

    def _choose(self, options: RunOptions) -> Mapping[str, Any]:
        """The environment that has all imports of the code and the packages of its job, or else the nearest one."""
        framework, strategy, digest = _container_need(options.environment.get(_LAUNCH, ""))
        code = [Path(source) for source, _ in options.volumes]
        modules = {name for folder in code if folder.is_dir() for name in imported_modules(folder)}
        rows = {row["name"]: row for row in self._environments if row["packages"] == digest}
        if not rows:
            raise OptionsError(
                f"this machine has no local environment with the packages {digest}: trainyard environments make"
            )
        facts = {
            name: EnvironmentFacts(name, tuple(row["serves"]), frozenset(row["offers"]), row["provides"])
            for name, row in rows.items()
        }
        lines = next(iter(rows.values()))["requirements"]
        serving = [
            row.name
            for row in environment_facts().values()
            if framework in {serves.partition("/")[0] for serves in row.serves}
        ]
        choice = choose_environment(Need(framework, strategy, modules, tuple(lines), team_own=not serving), facts)
        best = choice.fitting[0] if choice.fitting else choice.nearest
        if best is None:
            raise OptionsError(
                f"this machine has no local environment for {framework}: trainyard environments make {serving[0]}"
            )
        return rows[best.name]


def _container_need(document: str) -> tuple[str, str | None, str]:
    """Framework, strategy and packages in a launch document; "" and None for a container without one."""
    try:
        launch = json.loads(document or "{}")
        return str(launch.get("framework") or ""), launch.get("strategy"), str(launch.get("packages") or "")
    except (ValueError, AttributeError, RecursionError):
        return "", None, ""


def _kill_all(reaper: int) -> None:
    """Kills the descendants of a container's reaper. Then the reaper ends."""
    children = Path(f"/proc/{reaper}/task/{reaper}/children").read_text().split()
    for child in map(int, children):
        _kill_all(child)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _show_volumes(volumes: Sequence[tuple[str, str]]) -> None:
    """Creates a symbolic link for each volume, because a machine here cannot mount."""
    for source, target in volumes:
        if os.path.normpath(source) == os.path.normpath(target):
            Path(source).mkdir(parents=True, exist_ok=True)
            continue
        place = Path(target)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.is_symlink():
                place.unlink()
            elif place.is_dir():
                shutil.rmtree(place) if not any(place.iterdir()) else None
            place.symlink_to(source)
        except OSError as error:
            raise OptionsError(f"{source} cannot be shown at {target} on this stand-in: {error.strerror}") from None
