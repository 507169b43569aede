# SPDX-License-Identifier: Apache-2.0
"""Wakes the program that serves: a pipe with a name."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from launcher.aws_dl1.machine.facts import Places


def _pipe(places: Places) -> Path:
    return places.run / "wake"


class Bell:
    """What rings where `serve` waits."""

    def __init__(self, places: Places) -> None:
        places.run.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.mkfifo(_pipe(places), 0o600)
        # With a writer of our own it never ends.
        self.number = os.open(_pipe(places), os.O_RDWR | os.O_NONBLOCK)

    def ring(self) -> None:
        """As others do; a full pipe rings as well."""
        with suppress(BlockingIOError):
            os.write(self.number, b"\n")

    def silence(self) -> None:
        """Forgets all rings so far."""
        with suppress(BlockingIOError):
            os.read(self.number, 4096)


def ring(places: Places) -> bool:
    """False where nobody listens: whoever comes up looks into the queue by itself."""
    try:
        number = os.open(_pipe(places), os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return False
        raise
    try:
        # A full pipe rings as well.
        with suppress(BlockingIOError):
            os.write(number, b"\n")
    finally:
        os.close(number)
    return True
