# SPDX-License-Identifier: Apache-2.0
"""A command at a terminal, and what it has printed there so far."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.support.waiting import LONGEST_SECONDS, eventually

ROWS, COLUMNS = 24, 100


@dataclass
class Shown:
    """`process`: the command. A thread reads what it prints."""

    process: subprocess.Popen[bytes]
    _read: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str:
        return bytes(self._read).decode(errors="replace")

    def until(self, enough: Callable[[str], bool]) -> str:
        return eventually(lambda: self.text, enough)

    def take_from(self, terminal: int) -> None:
        with suppress(OSError):  # all processes have closed the terminal
            while chunk := os.read(terminal, 65536):
                self._read += chunk


@contextmanager
def on_terminal(words: Sequence[str], environment: Mapping[str, str]) -> Iterator[Shown]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(words, env=environment, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = Shown(process)
    reader = threading.Thread(target=shown.take_from, args=(master,), daemon=True)
    reader.start()
    try:
        yield shown
        process.wait(LONGEST_SECONDS)
    finally:
        process.kill()
        process.wait()
        reader.join(LONGEST_SECONDS)
        os.close(master)
