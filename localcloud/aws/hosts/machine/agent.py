# SPDX-License-Identifier: Apache-2.0
"""The agent of Systems Manager: runs the commands that the cloud puts into a folder, and reports their results."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from localcloud.aws.hosts.machine import console

_LOOK_SECONDS = 0.05
_GRACE_SECONDS = 5.0
# How much of an output Systems Manager keeps.
_KEPT = 24_000


class Agent:
    """Polls for commands. They run at the same time, each in a process group of its own."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._running: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        # The cloud marks commands of an earlier boot as ended, and their files are removed before this boot.
        seen: set[str] = set()
        console.report("agent")
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
        console.report("began", id=command["id"])
        script = "\n".join(command["lines"])
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", script, env=dict(self._environment), cwd=command["folder"] or "/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        kept = [bytearray(), bytearray()]
        readers = [
            asyncio.create_task(_keep(stream, part))
            for stream, part in zip((process.stdout, process.stderr), kept, strict=True)
            if stream
        ]
        code: int | None = None
        try:
            async with asyncio.timeout(command["timeoutSeconds"]):
                code = await process.wait()
        except TimeoutError:
            await _end(process)
        except asyncio.CancelledError:
            await _end(process)
            code = -signal.SIGTERM
        # A remaining child process may hold the output open.
        await asyncio.wait(readers, timeout=1.0)
        for stream, part in zip(("output", "errors"), kept, strict=True):
            text = part.decode(errors="replace")
            for first in range(0, len(text), console.PART):
                console.report("printed", id=command["id"], stream=stream, text=text[first : first + console.PART])
        console.report("done", id=command["id"], code=code)


async def _keep(stream: asyncio.StreamReader, kept: bytearray) -> None:
    while chunk := await stream.read(console.PART):
        kept += chunk[: max(0, _KEPT - len(kept))]


async def _end(process: Process) -> None:
    """Ends a command and all its child processes."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await process.wait()
                return
