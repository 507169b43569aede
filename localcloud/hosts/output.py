# SPDX-License-Identifier: Apache-2.0
"""The output of a node: it is kept in the run's folder and passed on line by line."""

from __future__ import annotations

from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from pathlib import Path

_CHUNK = 64 * 1024
MAXIMUM_LINE = 64 * 1024


class OutputSink:
    """Where the output of one node goes."""

    def __init__(self, file: Path, give: Callable[[Sequence[bytes]], None]) -> None:
        self._file = file
        self._give = give

    async def drain(self, process: Process) -> None:
        """Reads until the last process of the node has closed its output."""
        if process.stdout is None:
            return
        pending = b""
        with self._file.open("ab") as file:
            while chunk := await process.stdout.read(_CHUNK):
                file.write(chunk)
                file.flush()
                *lines, pending = (pending + chunk).split(b"\n")
                if len(pending) > MAXIMUM_LINE:
                    cut = _end_of_character(pending, MAXIMUM_LINE)
                    lines, pending = [*lines, pending[:cut]], pending[cut:]
                self._give(lines)
            self._give([pending] if pending else [])


def _end_of_character(text: bytes, place: int) -> int:
    """The last place up to this one where no character of UTF-8 is cut."""
    return next((end for end in range(place, place - 4, -1) if text[end] & 0xC0 != 0x80), place)
