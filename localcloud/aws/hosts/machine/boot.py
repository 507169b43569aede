# SPDX-License-Identifier: Apache-2.0
"""The first program of a machine. It carries out user data in place of cloud-init, keeps services running in place of
systemd, and runs the agent of Systems Manager. It is root inside the machine, and has no rights outside."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from localcloud.aws.hosts.machine import console, control_socket
from localcloud.aws.hosts.machine.agent import Agent
from localcloud.aws.hosts.machine.containers import Containers
from localcloud.aws.hosts.machine.given import BOOT, COMMANDS
from localcloud.aws.hosts.machine.units import Units

# cloud-init's own mark of an instance that has booted before.
BOOTED = Path("/var/lib/cloud/instance/boot-finished")
PATH = "/.trainyard/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PLAIN = 0o644
# Folders that programs expect.
_FOLDERS = ("/var/lib", "/var/log", "/var/cache", "/var/spool", "/etc/systemd/system", "/run/lock", "/run/sshd")


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
        self.containers = Containers(self.environment, facts["environments"])

    async def live(self) -> int:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.shut_down, "")
        for folder in _FOLDERS:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self.containers.mark_ended()
        listener = await control_socket.listen(
            {"systemctl": self.units.ask, "docker": self.containers.ask, "machine": self._ask}
        )
        console.report("running")
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
            console.report("ended", by=self.ended_by)
        return 0

    def shut_down(self, by: str) -> None:
        """Ends the machine. `by`: the request from inside, `halt` or `reboot`; empty if the cloud ends it."""
        self.ended_by = self.ended_by or by
        self._end.set()

    async def _ask(self, request: Mapping[str, Any]) -> control_socket.Answer:
        self.shut_down("reboot" if request["arguments"] == ["reboot"] else "halt")
        return control_socket.Answer()

    async def _boot(self) -> None:
        plan = self._facts["plan"]
        for reason in plan["notes"]:
            console.say("cloud-init", reason)
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
        console.say("cloud-init", "the machine has booted")

    async def _carry_out(self, command: str | Sequence[str]) -> None:
        """Runs a command of user data. If it fails, the next one runs all the same, as with cloud-init."""
        words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        try:
            process = await asyncio.create_subprocess_exec(
                *words, env=self.environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        except OSError as error:
            console.say("cloud-init", f"{words[0]}: {error.strerror}")
            return
        if process.stdout:
            await console.pass_on("cloud-init", process.stdout)
        if code := await process.wait():
            console.say("cloud-init", f"{words[0]} ended with {code}")


def write_file(file: Mapping[str, Any]) -> None:
    """Writes a file of user data, with its permissions."""
    path = Path(file["path"])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab" if file["append"] else "wb") as opened:
            opened.write(base64.b64decode(file["content"]))
        path.chmod(file["permissions"] or _PLAIN)
    except OSError as error:
        console.say("cloud-init", f"{path} could not be written: {error.strerror}")
