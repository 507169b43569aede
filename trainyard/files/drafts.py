# SPDX-License-Identifier: Apache-2.0
"""A file that is being fetched: its bytes as far as they have come, and a journal of the parts that are whole.

After a kill the next process verifies each part that the journal names, and fetches the others.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from components.platform.checksums import as_text, digest_of, md5
from components.platform.file_errors import FileProblemError
from components.platform.files import StoredObject
from trainyard.files.targets import Target, raise_if_full

_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass
class Draft:
    """An open draft. `name`: what it is called in the workplace."""

    target: Target
    name: str
    file: int
    journal: int | None
    digests: dict[int, bytes] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def sink(self, start: int, progress: Any) -> DraftSink:
        return DraftSink(self, start, progress)

    def arrived(self, number: int, digest: bytes) -> None:
        """A part is whole. One short write keeps the journal's lines whole, too."""
        with self._lock:
            self.digests[number] = digest
            if self.journal is not None:
                os.write(self.journal, json.dumps([number, as_text(digest)]).encode() + b"\n")

    def forget(self) -> None:
        for name in (self.name, _journal_of(self.name)):
            with suppress(OSError):
                os.unlink(name, dir_fd=self.target.work)


@dataclass
class DraftSink:
    """Writes the bytes of one part where they belong. `progress` takes their number, negative if they come again."""

    draft: Draft
    start: int
    progress: Any
    size: int = 0
    _digest: Any = field(default_factory=md5)

    def restart(self) -> None:
        if self.size:
            self.progress(-self.size)
        self.size, self._digest = 0, md5()

    def take(self, block: bytes) -> None:
        self._digest.update(block)
        view, place = memoryview(block), self.start + self.size
        try:
            while view:
                written = os.pwrite(self.draft.file, view, place)
                view, place = view[written:], place + written
        except OSError as error:
            raise_if_full(error, self.draft.target.path)
            raise FileProblemError(f"cannot be written: {error.strerror}") from None
        self.size += len(block)
        self.progress(len(block))

    @property
    def digest(self) -> bytes:
        return bytes(self._digest.digest())


@contextmanager
def open_draft(target: Target, item: StoredObject, ranges: dict[int, tuple[int, int]] | None = None) -> Iterator[Draft]:
    """The draft of an object. With `ranges`, by number, it has a journal, and keeps what an earlier process fetched."""
    identity = f"{item.name}\n{item.etag}\n{sorted((ranges or {}).values())[:1]}"
    name = hashlib.sha256(identity.encode()).hexdigest()[:40]
    try:
        file = _open(target, name)
        journal = _open(target, _journal_of(name), os.O_APPEND) if ranges else None
        _set_size(target, file, item.size)
    except OSError as error:
        raise_if_full(error, target.path)
        raise FileProblemError(f"cannot be written: {error.strerror}") from None
    draft = Draft(target, name, file, journal)
    if ranges and journal is not None:
        draft.digests = _whole_parts(file, journal, ranges)
    try:
        yield draft
    except FileProblemError:
        _end(draft)
        raise
    # Not after other errors: threads may still write by these descriptors, whose numbers would be given to other files.
    _end(draft)


def _end(draft: Draft) -> None:
    """Nobody goes on with a draft that has no journal."""
    if draft.journal is None:
        draft.forget()
    else:
        os.close(draft.journal)
    os.close(draft.file)


def _open(target: Target, name: str, more: int = 0) -> int:
    """A link, or another name of a file that lies elsewhere, is removed: nothing is written through it."""
    with suppress(FileNotFoundError):
        status = os.lstat(name, dir_fd=target.work)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            os.unlink(name, dir_fd=target.work)
    return os.open(name, _OPEN | more, 0o666, dir_fd=target.work)


def _set_size(target: Target, file: int, size: int) -> None:
    """Says at once where the disk has no room for all of it."""
    room = os.fstatvfs(file)
    missing = size - os.fstat(file).st_blocks * 512
    if missing > room.f_bavail * room.f_frsize:
        raise_if_full(OSError(28, f"{missing} bytes are needed, {room.f_bavail * room.f_frsize} are free"), target.path)
    os.ftruncate(file, size)


def _whole_parts(file: int, journal: int, ranges: dict[int, tuple[int, int]]) -> dict[int, bytes]:
    size = os.fstat(journal).st_size
    whole: dict[int, bytes] = {}
    for line in os.pread(journal, size, 0).splitlines():
        with suppress(ValueError, TypeError):
            number, stated = json.loads(line)
            if number in ranges and as_text(digest := digest_of(file, *ranges[number])) == stated:
                whole[number] = digest
    return whole


def _journal_of(name: str) -> str:
    return f"{name}.parts"
