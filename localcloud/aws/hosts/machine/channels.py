# SPDX-License-Identifier: Apache-2.0
"""How the programs of a machine communicate: with the cloud by files and reports, and with one another by a socket and
by the states and logs of containers."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PROGRAMS, PACKAGE = "/.trainyard", "localcloud.aws.hosts.machine"
# Starts a module of this package, in an interpreter without other packages than the standard library.
START = (
    "import sys; from importlib import import_module; sys.path.insert(0, sys.argv[1]);"
    " sys.exit(import_module(sys.argv[2]).main(sys.argv[3:]))"
)
GIVEN = f"{PROGRAMS}/given"
BOOT, COMMANDS = Path(GIVEN, "boot.json"), Path(GIVEN, "commands")
# The beginning of a report. All other lines begin with `[`, so no program's output can look like a report.
REPORT = "\x1etrainyard "
# The cloud accepts lines of 64 KiB, and JSON may need six bytes for one character.
PART = 8000
# docker splits longer lines.
_LONGEST_LINE = 16 * 1024
SOCKET = "/run/machine.sock"
_LONGEST_REQUEST = 4 << 20
# The key of a request with the program's name. It must not change: machines that were started before an upgrade of
# trainyard read it, too.
_PROGRAM = "door"
CONTAINERS = Path("/var/lib/docker/containers")


def print_on_console(source: str, text: str) -> None:
    """Prints a line on the console."""
    _write_console(f"[{source}] {text}\n")


def send_machine_report(event: str, **details: Any) -> None:
    """Sends a report to the cloud."""
    _write_console(f"{REPORT}{json.dumps({'event': event, **details})}\n")


async def pass_on(source: str, stream: asyncio.StreamReader) -> None:
    """Prints a program's output on the console until the program closes it. Long lines are split."""
    async for line in output_lines(stream, PART):
        print_on_console(source, line)


async def output_lines(stream: asyncio.StreamReader, longest: int = _LONGEST_LINE) -> Any:
    """The lines of a program's output. Long lines are split."""
    pending = b""
    while chunk := await stream.read(PART):
        *whole, pending = (pending + chunk).split(b"\n")
        if len(pending) > longest:
            whole, pending = [*whole, pending], b""
        for line in whole:
            yield line.decode(errors="replace")
    if pending:
        yield pending.decode(errors="replace")


def _write_console(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@dataclass(frozen=True)
class Answer:
    """A stand-in's output and exit code. `follow` names a container whose output it prints first."""

    code: int = 0
    output: str = ""
    errors: str = ""
    follow: str = ""


Responder = Callable[[Mapping[str, Any]], Awaitable[Answer]]


async def serve_stand_ins(responders: Mapping[str, Responder]) -> asyncio.Server:
    """Serves requests of the stand-ins. `responders`: by the name of the program that a stand-in replaces."""

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

    return await asyncio.start_unix_server(serve, SOCKET, limit=_LONGEST_REQUEST)


def ask_machine(program: str, **request: Any) -> Answer:
    """Sends a request to the machine's first program, and waits for the answer."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(SOCKET)
        with connection.makefile("rwb") as file:
            file.write(json.dumps({_PROGRAM: program, **request}).encode() + b"\n")
            file.flush()
            return Answer(**json.loads(file.readline()))


@dataclass
class ContainerState:
    """The state of a container. As with docker, it is kept after the end."""

    name: str
    image: str
    command: Sequence[str]
    status: str = "created"
    code: int = 0
    pid: int = 0
    started: str = ""
    finished: str = ""
    removes_itself: bool = False

    def write(self) -> None:
        CONTAINERS.mkdir(parents=True, exist_ok=True)
        draft = state_file(self.name).with_suffix(".new")
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(state_file(self.name))


def state_file(name: str) -> Path:
    return CONTAINERS / f"{name}.json"


def log_file(name: str) -> Path:
    return CONTAINERS / f"{name}.log"


def read_container_state(name: str) -> ContainerState | None:
    try:
        return ContainerState(**json.loads(state_file(name).read_text()))
    except FileNotFoundError:
        return None
