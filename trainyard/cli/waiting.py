# SPDX-License-Identifier: Apache-2.0
"""Shows that a command waits for a cloud, once that takes more than two seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trainyard.cli.out import redraw_aside, say_aside
from trainyard.engine.progress import can_redraw_lines

# Short waits show nothing.
FIRST_SECONDS = 2.0
_EVERY_SECONDS = {True: 0.5, False: 20.0}


@contextmanager
def show_waiting(what: str) -> Iterator[None]:
    """Shows `what` on stderr while the block runs."""
    with show_while(lambda seconds: f"{what}, {seconds:.0f} s"):
        yield


@contextmanager
def show_while(text: Callable[[float], str]) -> Iterator[None]:
    """Shows a text on stderr while the block runs: on a terminal in one line that goes again, elsewhere in a new line
    now and then. `text`: made of the seconds since the block began."""
    over, started = threading.Event(), time.monotonic()
    redraws = can_redraw_lines(sys.stderr)

    def show() -> None:
        pause = FIRST_SECONDS
        while not over.wait(pause):
            line = text(time.monotonic() - started)
            redraw_aside(line) if redraws else say_aside(line)
            pause = _EVERY_SECONDS[redraws]

    watcher = threading.Thread(target=show, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        if redraws and time.monotonic() - started >= FIRST_SECONDS:
            redraw_aside("")
