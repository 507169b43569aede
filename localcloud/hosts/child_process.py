# SPDX-License-Identifier: Apache-2.0
"""The small processes of the hosts: how they are started, and the messages that they exchange.

They start fast, because they import only the standard library and their own modules. A site talks with the hosts over a
socket pair, in JSON and open files. A starting node reports to its supervisor through a pipe, one message per line; the
run's command does not have that pipe.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trainyard.engine.isolated import isolated_python

_PROJECT = str(Path(__file__).resolve().parents[2])
_START = (
    "import sys; from importlib import import_module; sys.path.insert(0, sys.argv[1]);"
    " sys.exit(import_module(sys.argv[2]).main(sys.argv[3:]))"
)
_LENGTH = struct.Struct("!I")
# The kernel's limit for one message.
MAXIMUM_FILES = 253
_LONGEST_REASON = 2000


def module_command(module: str, *arguments: str) -> list[str]:
    return isolated_python("-S", "-c", _START, _PROJECT, module, *arguments)


def interpreter_variables() -> dict[str, str]:
    """The variables that an interpreter needs to start. The cloud's other variables may contain its user's secrets."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PATH") if name in os.environ}


def send_message(control: socket.socket, message: Any, files: Sequence[int] = ()) -> None:
    content = json.dumps(message).encode()
    header = _LENGTH.pack(len(content))
    if files:
        socket.send_fds(control, [header], list(files))
    else:
        control.sendall(header)
    control.sendall(content)


def receive_message(control: socket.socket) -> tuple[Any, list[int]]:
    """The next message with its open files; EOFError once the other side is gone."""
    header, files, _, _ = socket.recv_fds(control, _LENGTH.size, MAXIMUM_FILES, socket.MSG_CMSG_CLOEXEC)
    header += _receive_exactly(control, _LENGTH.size - len(header)) if header else b""
    if not header:
        raise EOFError
    return json.loads(_receive_exactly(control, _LENGTH.unpack(header)[0])), list(files)


def _receive_exactly(control: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = control.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class UnstartableError(Exception):
    """The node could not start. The text says why."""

    REASON = "unstartable"


class RefusedError(UnstartableError):
    """The node refuses something that it got, such as an archive. The text says why."""

    REASON = "refused"


def read_messages(report: int) -> Iterator[dict[str, Any]]:
    """Yields messages until the last writer has closed the pipe."""
    pending = b""
    while True:
        line, newline, rest = pending.partition(b"\n")
        if newline:
            pending = rest
            yield json.loads(line)
        elif more := os.read(report, 4096):
            pending += more
        else:
            return


def raise_if_unstartable(messages: Iterable[dict[str, Any]]) -> None:
    """Raises an error if a message says that the node could not start."""
    for message in messages:
        for key, kind in (("error", UnstartableError), ("refused", RefusedError)):
            if key in message:
                raise kind(str(message[key])[:_LONGEST_REASON])
