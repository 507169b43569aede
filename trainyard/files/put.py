# SPDX-License-Identifier: Apache-2.0
"""Sends files to a bucket: small ones whole, large ones in parts. What is there already is not sent again."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from components.platform import streams
from components.platform.files import (
    Content,
    ContentChangedError,
    FileProblemError,
    ObjectChangedError,
    Store,
    StoredObject,
    StoredPart,
    TransferError,
)
from components.platform.streams import as_text, digest_of, object_name, of_parts
from trainyard.engine.trusted import open_lock, own_folder
from trainyard.files.sources import OpenedFile, SourceFile, open_source
from trainyard.files.workers import Account, Workers

OVERWRITE = "--overwrite puts this one in its place"


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


@dataclass(frozen=True)
class Put:
    """`prefix`: the folder in the bucket. `overwrite`: objects with another content may be replaced."""

    store: Store
    prefix: str
    account: Account
    overwrite: bool = False
    # Why nothing may be put under a name. Empty: it may.
    reserved: Callable[[str], str] = lambda name: ""

    def send(self, sources: Iterable[SourceFile], alone: bool = False) -> None:
        """Returns when all is there. Files that could not be sent are problems of the account.

        `alone`: it is one file, for which nobody needs to list the whole folder.
        """
        existing = {} if alone else self._listed(f"{self.prefix}/" if self.prefix else "")
        with Workers() as workers:
            for source in sources:
                name, why = object_name(self.prefix, source.path)
                why = why or self.reserved(name)
                if why:
                    self.account.problem(source.path, why)
                    continue
                self.account.add(expected=source.size)
                present = self._first(name) if alone else existing.get(name)
                if source.size <= streams.part_bytes(source.size):
                    workers.give(partial(self._small, name, source, present))
                else:
                    self._large(workers, name, source, present)
            workers.finish()

    def _listed(self, prefix: str) -> dict[str, StoredObject]:
        return {item.name: item for item in self.store.list(prefix)}

    def _first(self, name: str) -> StoredObject | None:
        """Lists have the shortest name first."""
        item = next(iter(self.store.list(name)), None)
        return item if item is not None and item.name == name else None

    def _small(self, name: str, source: SourceFile, present: StoredObject | None) -> None:
        try:
            with open_source(source) as opened:
                if self._is_there(opened, present):
                    return
                content = Content(opened.file, 0, opened.size, as_text(digest_of(opened.file, 0, opened.size)))
                opened.require_unchanged()
                try:
                    self.store.put(name, content, present)
                except ObjectChangedError:
                    self._require_same(opened, name)
                    return
                self.account.add(moved=1, sent=opened.size)
                opened.require_unchanged()
        except FileProblemError as problem:
            self.account.problem(source.path, problem)

    def _large(self, workers: Workers, name: str, source: SourceFile, present: StoredObject | None) -> None:
        """Runs in the thread that gives tasks. Only the parts are tasks."""
        # What was given before has its own progress to make.
        workers.finish()
        try:
            with open_source(source) as opened:
                if self._is_there(opened, present):
                    return
                with upload_note(self.store.address, name, source.where) as note:
                    upload = _Upload(self.store, self.account, name, opened, present, note)
                    try:
                        upload.run(workers)
                    except ObjectChangedError:
                        self._require_same(opened, name)
                        return
                self.account.add(moved=1)
        except FileProblemError as problem:
            self.account.problem(source.path, problem)

    def _is_there(self, opened: OpenedFile, present: StoredObject | None) -> bool:
        """FileProblemError: another content is there, and it must stay."""
        if present is None:
            return False
        if self._same(opened, present):
            self.account.add(there=1, kept=opened.size)
            return True
        if not self.overwrite:
            raise FileProblemError(f"the bucket has another content under this name; {OVERWRITE}")
        return False

    def _require_same(self, opened: OpenedFile, name: str) -> None:
        """Another process may have put the same file meanwhile."""
        seen = self.store.look(name)
        if seen is None or not self._same(opened, seen[0]):
            raise ObjectChangedError
        self.account.add(there=1)

    def _same(self, opened: OpenedFile, present: StoredObject) -> bool:
        if present.size != opened.size:
            return False
        if present.checksum and streams.matches(opened.file, opened.size, present.checksum):
            return True
        if present.checksum and not streams.possible_parts(opened.size, present.checksum):
            return False
        # A list states no sizes of parts, and some stores no checksum.
        seen = self.store.look(present.name)
        return seen is not None and streams.matches(opened.file, opened.size, seen[0].checksum, seen[1])


@dataclass
class _Upload:
    """One large file on its way, in parts."""

    store: Store
    account: Account
    name: str
    opened: OpenedFile
    replaces: StoredObject | None
    note: UploadNote
    _digests: dict[int, bytes] = field(default_factory=dict)
    _changed: list[FileProblemError] = field(default_factory=list)

    def run(self, workers: Workers) -> None:
        size = self.opened.size
        part = streams.part_bytes(size)
        upload, there = self._begin(part)
        for number, (start, length) in enumerate(streams.parts(size, part), 1):
            workers.give(partial(self._part, upload, number, start, length, there.get(number)))
        workers.finish()
        try:
            for problem in self._changed:
                raise problem
            self.opened.require_unchanged()
            self._commit(upload)
        except (ContentChangedError, ObjectChangedError):
            # No later upload can go on with these parts.
            self.note.clear()
            self.store.abandon(self.name, upload)
            raise
        self.note.clear()

    def _begin(self, part: int) -> tuple[str, dict[int, StoredPart]]:
        upload = self.note.read(self.opened.size, part)
        there = self.store.parts(self.name, upload) if upload else None
        if upload and there is not None:
            return upload, there
        upload = self.store.begin(self.name, part, self.replaces)
        self.note.write(upload, self.opened.size, part)
        return upload, {}

    def _part(self, upload: str, number: int, start: int, length: int, there: StoredPart | None) -> None:
        """Hashes before it sends, so that the store verifies what this process read."""
        digest = digest_of(self.opened.file, start, length)
        self._digests[number] = digest
        if there is not None and (there.size, there.md5) == (length, as_text(digest)):
            self.account.add(kept=length)
            return
        try:
            if not self._changed:
                content = Content(self.opened.file, start, length, as_text(digest))
                self.store.put_part(self.name, upload, number, content)
                self.account.add(sent=length)
        except FileProblemError as problem:
            self._changed.append(problem)

    def _commit(self, upload: str) -> None:
        """By the store's own list: a part whose answer was lost may have been stored twice."""
        digests = [digest for _, digest in sorted(self._digests.items())]
        stored = self.store.parts(self.name, upload)
        expected = {number: as_text(digest) for number, digest in enumerate(digests, 1)}
        if stored is None or {number: part.md5 for number, part in stored.items()} != expected:
            raise ObjectChangedError
        if self.store.commit(self.name, upload, stored, self.replaces) != of_parts(digests):
            raise FileProblemError("the bucket states another checksum than this file has; run the same command again")
