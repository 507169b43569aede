# SPDX-License-Identifier: Apache-2.0
"""The log files of a task: what its runtime sends as one stream, each part in its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from localcloud.hosts.openpai import runtime

# By the letter of a line. What the user's command prints is in `all`, too.
_FILES = {runtime.OUTPUT: ("stdout", "all"), runtime.ERRORS: ("stderr", "all"), runtime.RUNTIME: ("runtime.log",)}
_NAMES = tuple(dict.fromkeys(name for names in _FILES.values() for name in names))
# OpenPAI's runtime looks for what it knows in so much of a log.
_TAIL = 10 * 1024 * 1024


class TaskLogs:
    """Nobody but this cloud writes in the folder, so its files are what they seem."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in _NAMES:
            (folder / name).touch()

    def give(self, lines: Sequence[bytes]) -> None:
        """Lines as the runtime sends them. One that has no letter is not of the runtime: it belongs to `all`."""
        parts: dict[str, list[bytes]] = {}
        for line in lines:
            names = _FILES.get(chr(line[0])) if line else None
            if names is None or line[1:2] not in (b".", b"+"):
                names, line = ("all",), b"o." + line
            end = b"" if line[1:2] == b"+" else b"\n"
            for name in names:
                parts.setdefault(name, []).append(line[2:] + end)
        for name, content in parts.items():
            with (self._folder / name).open("ab") as file:
                file.write(b"".join(content))

    def tail(self) -> bytes:
        """The end of what the user's command printed."""
        with (self._folder / "all").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            return file.read()
