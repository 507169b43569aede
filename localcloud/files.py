# SPDX-License-Identifier: Apache-2.0
"""Files with secrets, transactions of SQLite, identity of processes, and the choices of isolation."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

REQUIRED, WHERE_POSSIBLE = "required", "where-possible"
CHOICES = (REQUIRED, WHERE_POSSIBLE)
VARIABLE = "TRAINYARD_ISOLATION"
REMEDY = (
    "docs/local-cloud.md explains how to allow it on this machine; to run code that you trust without isolation:"
    f" --isolation {WHERE_POSSIBLE}"
)


def write_secret(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Writes the file atomically. By default only its owner can read it."""
    draft = path.with_suffix(f".{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
    draft.replace(path)


class NotRegularFileError(OSError):
    """A link, a folder, a device or a pipe is where a file should be."""


@contextmanager
def open_regular_file(path: Path) -> Iterator[IO[bytes]]:
    """Opens a regular file. Does not follow links, and opens no device or pipe, which might block or never end."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise NotRegularFileError("it is not a regular file")
        yield file


@contextmanager
def sqlite_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # on a full disk SQLite may have rolled back already
            connection.execute("ROLLBACK")
        raise


def process_start_time(pid: int | str) -> str:
    """The kernel's start time of a process; empty if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if fields[0] == "Z" else fields[19]


def is_same_process(pid: int, started: str) -> bool:
    return bool(started) and process_start_time(pid) == started
