# SPDX-License-Identifier: Apache-2.0
"""JSON and open files over a socket pair, between the hosts and a site."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

_LENGTH = struct.Struct("!I")
# The kernel's limit for one message.
MAXIMUM_FILES = 253


def send(control: socket.socket, message: Any, files: Sequence[int] = ()) -> None:
    content = json.dumps(message).encode()
    header = _LENGTH.pack(len(content))
    if files:
        socket.send_fds(control, [header], list(files))
    else:
        control.sendall(header)
    control.sendall(content)


def receive(control: socket.socket) -> tuple[Any, list[int]]:
    """The next message with its open files; EOFError once the other side is gone."""
    header, files, _, _ = socket.recv_fds(control, _LENGTH.size, MAXIMUM_FILES, socket.MSG_CMSG_CLOEXEC)
    header += _exactly(control, _LENGTH.size - len(header)) if header else b""
    if not header:
        raise EOFError
    return json.loads(_exactly(control, _LENGTH.unpack(header)[0])), list(files)


def _exactly(control: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = control.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
