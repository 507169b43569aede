# SPDX-License-Identifier: Apache-2.0
"""The first program of a machine. It carries out user data as cloud-init does, and runs services as systemd does. It is
also the agent of Systems Manager: it runs the commands that the cloud puts into a folder. It is root inside the
machine, and has no rights outside."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from localcloud.aws.hosts.machine import channels
from localcloud.aws.hosts.machine.channels import BOOT, COMMANDS
from localcloud.aws.hosts.machine.containers import Containers
from localcloud.aws.hosts.machine.units import Units

# cloud-init's marker file of an instance that has booted before.
BOOTED = Path("/var/lib/cloud/instance/boot-finished")
PATH = "/.trainyard/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PLAIN = 0o644
# Folders that programs expect.
_FOLDERS = ("/var/lib", "/var/log", "/var/cache", "/var/spool", "/etc/systemd/system", "/run/lock", "/run/sshd")
_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 5.0
# Systems Manager keeps this many bytes of an output.
_MOST_OUTPUT = 24_000


def main(arguments: list[str]) -> int:
    os.umask(0o022)
    return asyncio.run(Machine(json.loads(BOOT.read_text())).live())


class Machine:
    """One machine from its boot to its end."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts
        self._end = asyncio.Event()
        self.ended_by = ""
        environment = {"HOME": "/root", "LANG": "C.UTF-8", "USER": "root", "SHELL": "/bin/sh"}
        self.environment = {**environment, "PATH": f"{PATH}:{facts['path']}", **facts["environment"]}
        self.units = Units(self.environment, self.shut_down)
        self.containers = Containers(self.environment, facts["environments"], facts["stands_for"])

    async def live(self) -> int:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.shut_down, "")
        for folder in _FOLDERS:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self.containers.mark_ended()
        listener = await channels.serve_stand_ins(
            {"systemctl": self.units.ask, "docker": self.containers.ask, "machine": self._ask}
        )
        channels.send_machine_report("running")
        agent = asyncio.create_task(Agent(COMMANDS, self.environment).serve())
        boot = asyncio.create_task(self._boot())
        try:
            await self._end.wait()
        finally:
            for task in (agent, boot):
                task.cancel()
            listener.close()
            await self.units.stop_all()
            await self.containers.stop_all()
        if self.ended_by:
            channels.send_machine_report("ended", by=self.ended_by)
        return 0

    def shut_down(self, by: str) -> None:
        """Ends the machine. `by`: `halt` or `reboot` if a program on the machine requested it, "" if the cloud did."""
        self.ended_by = self.ended_by or by
        self._end.set()

    async def _ask(self, request: Mapping[str, Any]) -> channels.Answer:
        self.shut_down("reboot" if request["arguments"] == ["reboot"] else "halt")
        return channels.Answer()

    async def _boot(self) -> None:
        plan = self._facts["plan"]
        for reason in plan["notes"]:
            channels.print_on_console("cloud-init", reason)
        first = not BOOTED.exists()
        if first:
            for file in plan["write_files"]:
                write_file(file)
        for command in (*plan["bootcmd"], *(plan["runcmd"] if first else ())):
            await self._carry_out(command)
        if first:
            BOOTED.parent.mkdir(parents=True, exist_ok=True)
            BOOTED.touch()
        else:
            await self.units.start_enabled()
        channels.print_on_console("cloud-init", "the machine has booted")

    async def _carry_out(self, command: str | Sequence[str]) -> None:
        """Runs a command of user data. After a failure the next command runs, as with cloud-init."""
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        try:
            process = await asyncio.create_subprocess_exec(
                *words, env=self.environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        except OSError as error:
            channels.print_on_console("cloud-init", f"{words[0]}: {error.strerror}")
            return
        if process.stdout:
            await channels.pass_on("cloud-init", process.stdout)
        if code := await process.wait():
            channels.print_on_console("cloud-init", f"{words[0]} ended with {code}")


def write_file(file: Mapping[str, Any]) -> None:
    """Writes a file of user data."""
    path = Path(file["path"])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab" if file["append"] else "wb") as opened:
            opened.write(base64.b64decode(file["content"]))
        path.chmod(file["permissions"] or _PLAIN)
    except OSError as error:
        channels.print_on_console("cloud-init", f"{path} could not be written: {error.strerror}")


class Agent:
    """The agent of Systems Manager: polls for commands, and runs them in parallel, each in its own process group."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._running: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        # There are no commands of an earlier boot: the cloud ends them, and deletes their files before a boot.
        seen: set[str] = set()
        channels.send_machine_report("agent")
        while True:
            for file in sorted(self._folder.iterdir()):
                if file.name in seen:
                    continue
                seen.add(file.name)
                if file.suffix == ".json":
                    command = json.loads(file.read_text())
                    self._running[file.stem] = asyncio.create_task(self._carry_out(command))
                elif file.suffix == ".cancel" and (task := self._running.get(file.stem)):
                    task.cancel()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _carry_out(self, command: Mapping[str, Any]) -> None:
        script = "\n".join(command["lines"])
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", script, env=dict(self._environment), cwd=command["folder"] or "/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        outputs = [bytearray(), bytearray()]
        readers = [
            asyncio.create_task(_keep_output(stream, part))
            for stream, part in zip((process.stdout, process.stderr), outputs, strict=True)
            if stream
        ]
        code: int | None = None
        # From here on a cancellation ends the process. One while it starts would end neither it nor the command.
        channels.send_machine_report("began", id=command["id"])
        try:
            async with asyncio.timeout(command["timeoutSeconds"]):
                code = await process.wait()
        except TimeoutError:
            await _end_command(process)
        except asyncio.CancelledError:
            await _end_command(process)
            code = -signal.SIGTERM
        # A child process that still runs may hold the output open.
        await asyncio.wait(readers, timeout=1.0)
        for stream, part in zip(("output", "errors"), outputs, strict=True):
            text = part.decode(errors="replace")
            for first in range(0, len(text), channels.PART):
                channels.send_machine_report(
                    "printed", id=command["id"], stream=stream, text=text[first : first + channels.PART]
                )
        channels.send_machine_report("done", id=command["id"], code=code)


async def _keep_output(stream: asyncio.StreamReader, output: bytearray) -> None:
    while chunk := await stream.read(channels.PART):
        output += chunk[: max(0, _MOST_OUTPUT - len(output))]


async def _end_command(process: Process) -> None:
    """Ends a command and all its child processes."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await process.wait()
                return
