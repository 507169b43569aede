# SPDX-License-Identifier: Apache-2.0
"""The socket through which the stand-ins, which are small programs, ask the first program of their machine."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

SOCKET = "/run/machine.sock"
_LONGEST = 4 << 20
# The name that machines know which were started before an upgrade of this checkout.
_PROGRAM = "door"


@dataclass(frozen=True)
class Answer:
    """A stand-in's output and exit code. `follow` names a container whose output it prints first."""

    code: int = 0
    output: str = ""
    errors: str = ""
    follow: str = ""


Responder = Callable[[Mapping[str, Any]], Awaitable[Answer]]


async def listen(responders: Mapping[str, Responder]) -> asyncio.Server:
    """Serves the stand-ins. `responders`: by the name of the program that a stand-in replaces."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = json.loads(await reader.readline())
            try:
                answer = await responders[request[_PROGRAM]](request)
            except (OSError, ValueError) as error:
                answer = Answer(1, errors=f"{error}\n")
            writer.write(json.dumps(asdict(answer)).encode() + b"\n")
            await writer.drain()
        finally:
            writer.close()

    return await asyncio.start_unix_server(serve, SOCKET, limit=_LONGEST)


def ask(program: str, **request: Any) -> Answer:
    """Asks the machine's first program, and waits for its answer."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(SOCKET)
        with asked.makefile("rwb") as file:
            file.write(json.dumps({_PROGRAM: program, **request}).encode() + b"\n")
            file.flush()
            return Answer(**json.loads(file.readline()))
