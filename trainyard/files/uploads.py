# SPDX-License-Identifier: Apache-2.0
"""Remembers uploads that were cut off, in the user's cache, so that the next one goes on with them.

The note holds the upload's name only. Which parts arrived, and with what content, the store itself says.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from components.platform.file_errors import TransferError
from trainyard.engine.trusted import open_lock, own_folder


@dataclass
class UploadNote:
    """The note about one file's upload to one name. Without a file nothing is remembered."""

    _file: IO[bytes] | None

    def read(self, size: int, part_bytes: int) -> str | None:
        """The upload that was begun for a file of this size in such parts."""
        if self._file is None:
            return None
        self._file.seek(0)
        try:
            note: Any = json.loads(self._file.read() or b"null")
        except ValueError:
            return None
        fits = isinstance(note, dict) and (note.get("size"), note.get("part")) == (size, part_bytes)
        return str(note["upload"]) if fits and note.get("upload") else None

    def write(self, upload: str, size: int, part_bytes: int) -> None:
        self._replace(json.dumps({"upload": upload, "size": size, "part": part_bytes}).encode())

    def clear(self) -> None:
        """The upload is complete, or gone."""
        self._replace(b"")

    def _replace(self, content: bytes) -> None:
        if self._file is not None:
            self._file.seek(0)
            self._file.truncate()
            self._file.write(content)
            self._file.flush()


@contextmanager
def upload_note(place: str, name: str, source: Path) -> Iterator[UploadNote]:
    """The note of an upload from `source` to `name`. A process that finds it in use goes on without one."""
    path = _path(f"{place}\n{name}\n{source.resolve()}")
    with open_lock(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield UploadNote(None)
            return
        note = UploadNote(file)
        yield note
        if not path.stat().st_size:
            path.unlink(missing_ok=True)


def _path(identity: str) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        folder = own_folder(cache, "trainyard", "uploads")
    except OSError as error:
        raise TransferError(f"unfinished uploads cannot be noted down: {error}") from None
    return folder / hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:40]
