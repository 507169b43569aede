# SPDX-License-Identifier: Apache-2.0
"""Reads the files to bring. They may come from anybody: a file is read up to a limit, and never run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainyard.bring.notes import UNREADABLE, BringError, Note

# No job is described in more than this.
MOST_BYTES = 2_000_000
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text. `name`: as it was given."""

    name: str
    text: str
    has_bom: bool = False


def read_source_text(path: Path, name: str) -> SourceText:
    """BringError if it is not a text file."""

    def unreadable(why: str, remedy: str) -> BringError:
        return BringError(Note(UNREADABLE, name, 0, why, remedy))

    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise unreadable(f"it cannot be read: {error.strerror}", "name a file that is there") from None
    if len(data) > MOST_BYTES:
        message = f"it has more than {MOST_BYTES // 1_000_000} MB, which no description of a job has"
        raise unreadable(message, "name the file that describes the job")
    if b"\0" in data:
        raise unreadable("it is a binary file", "name the file that describes the job")
    # Comments of scripts have any encoding.
    text = data.decode("utf-8", errors="replace")
    return SourceText(name, text.removeprefix(_BOM), text.startswith(_BOM))
