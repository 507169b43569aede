# SPDX-License-Identifier: Apache-2.0
"""A named pipe that wakes the program that serves the queue."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from launcher.aws_dl1.machine.facts import MachinePaths


def _pipe_path(paths: MachinePaths) -> Path:
    return paths.run / "wake"


class WakePipe:
    """The end at which `serve` waits."""

    def __init__(self, paths: MachinePaths) -> None:
        paths.run.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.mkfifo(_pipe_path(paths), 0o600)
        # Opened for writing too: without any writer a reader would see the end of the file.
        self.number = os.open(_pipe_path(paths), os.O_RDWR | os.O_NONBLOCK)

    def wake(self) -> None:
        """Wakes this program itself."""
        with suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self.number, b"\n")

    def drain(self) -> None:
        """Empties the pipe."""
        with suppress(BlockingIOError):
            os.read(self.number, 4096)


def wake_server(paths: MachinePaths) -> bool:
    """Wakes the program. Returns False if it does not run: it reads the queue by itself when it begins."""
    try:
        number = os.open(_pipe_path(paths), os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return False
        raise
    try:
        with suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(number, b"\n")
    finally:
        os.close(number)
    return True
