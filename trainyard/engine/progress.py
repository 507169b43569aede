# SPDX-License-Identifier: Apache-2.0
"""Shows progress on stderr: on a terminal as one line that is updated, otherwise as a new line now and then."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TextIO

EVERY_SECONDS = {True: 0.2, False: 10.0}


def can_redraw_lines(stream: TextIO) -> bool:
    """Whether the stream leads to a terminal that can move its cursor: one with `TERM=dumb` would show the bytes."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


class Progress:
    """`say` announces a step. `update` reports on it, and may be called as often as you like."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = can_redraw_lines(self._stream)
        self._started = self._shown = time.monotonic()
        self._line_open = False

    def say(self, text: str) -> None:
        self._write(f"trainyard: {text}", keep=True)

    def update(self, text: str) -> None:
        now = time.monotonic()
        if now - self._shown >= EVERY_SECONDS[self._terminal]:
            self._shown = now
            self._write(f"trainyard: {text}, {int(now - self._started)} s", keep=not self._terminal)

    def _write(self, text: str, keep: bool) -> None:
        erase = "\r\033[K" if self._line_open else ""
        self._stream.write(erase + text + ("\n" if keep else ""))
        self._stream.flush()
        self._line_open = not keep


def main(arguments: Sequence[str]) -> int:
    """Runs a command that shows no progress of its own. The first argument is the text to show."""
    text, *command = arguments
    progress = Progress()
    progress.say(text)
    with subprocess.Popen(command) as process:
        while True:
            try:
                code = process.wait(0.1)
                break
            except subprocess.TimeoutExpired:
                progress.update(text)
            except KeyboardInterrupt:
                continue  # the command gets the same SIGINT, and ends by itself
    progress.say(f"{text}: {'done' if code == 0 else 'failed'}")
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
