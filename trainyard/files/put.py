# SPDX-License-Identifier: Apache-2.0
"""Uploads files to a bucket: small ones whole, large ones in parts. Content that is there already is not sent again."""

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
from components.platform.streams import checksum_of_parts, checksum_text, digest_of, object_name
from trainyard.engine.trusted import open_lock, own_folder
from trainyard.files.sources import OpenedFile, SourceFile, open_source
from trainyard.files.workers import TransferReport, Workers

OVERWRITE = "--overwrite puts this one in its place"


@dataclass
class UploadNote:
    """Remembers the unfinished upload of one file to one name. Without a file, it remembers nothing."""

    _file: IO[bytes] | None

    def read(self, size: int, part_bytes: int) -> str | None:
        """The id of the unfinished upload, if the file's size and the part size are still the same."""
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
    """The note for the upload of `source` to `name`. If another process uses it, this one uploads without a note."""
    identity = f"{place}\n{name}\n{source.resolve()}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        folder = own_folder(cache, "trainyard", "uploads")
    except OSError as error:
        raise TransferError(f"no note of the unfinished upload can be kept: {error}") from None
    path = folder / hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:40]
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


@dataclass(frozen=True)
class Put:
    """`prefix`: the folder in the bucket. `overwrite`: objects with another content may be replaced."""

    store: Store
    prefix: str
    report: TransferReport
    overwrite: bool = False
    # Returns why nothing may be put under a name, or "".
    reserved: Callable[[str], str] = lambda name: ""

    def send(self, sources: Iterable[SourceFile], alone: bool = False) -> None:
        """Returns when all files are sent. Files that could not be sent become problems of the report.

        `alone`: there is only one file, so the folder in the bucket need not be listed.
        """
        existing = {} if alone else self._listed(f"{self.prefix}/" if self.prefix else "")
        with Workers() as workers:
            for source in sources:
                name, why = object_name(self.prefix, source.path)
                why = why or self.reserved(name)
                if why:
                    self.report.problem(source.path, why)
                    continue
                self.report.add(expected=source.size)
                present = self._first(name) if alone else existing.get(name)
                if source.size <= streams.part_bytes(source.size):
                    workers.give(partial(self._small, name, source, present))
                else:
                    self._large(workers, name, source, present)
            workers.finish()

    def _listed(self, prefix: str) -> dict[str, StoredObject]:
        return {item.name: item for item in self.store.list(prefix)}

    def _first(self, name: str) -> StoredObject | None:
        """The object of exactly this name. A list by prefix starts with it, because the shortest name comes first."""
        item = next(iter(self.store.list(name)), None)
        return item if item is not None and item.name == name else None

    def _small(self, name: str, source: SourceFile, present: StoredObject | None) -> None:
        try:
            with open_source(source) as opened:
                if self._is_there(opened, present):
                    return
                content = Content(opened.file, 0, opened.size, checksum_text(digest_of(opened.file, 0, opened.size)))
                opened.require_unchanged()
                try:
                    self.store.put(name, content, present)
                except ObjectChangedError:
                    self._require_same(opened, name)
                    return
                self.report.add(moved=1, sent=opened.size)
                opened.require_unchanged()
        except FileProblemError as problem:
            self.report.problem(source.path, problem)

    def _large(self, workers: Workers, name: str, source: SourceFile, present: StoredObject | None) -> None:
        """Runs in the main thread. Only the parts are tasks of the workers."""
        # Files that were given before come first.
        workers.finish()
        try:
            with open_source(source) as opened:
                if self._is_there(opened, present):
                    return
                with upload_note(self.store.address, name, source.where) as note:
                    upload = _Upload(self.store, self.report, name, opened, present, note)
                    try:
                        upload.run(workers)
                    except ObjectChangedError:
                        self._require_same(opened, name)
                        return
                self.report.add(moved=1)
        except FileProblemError as problem:
            self.report.problem(source.path, problem)

    def _is_there(self, opened: OpenedFile, present: StoredObject | None) -> bool:
        """Whether the bucket has the same content. FileProblemError: other content is there, and must stay."""
        if present is None:
            return False
        if self._has_same_content(opened, present):
            self.report.add(there=1, kept=opened.size)
            return True
        if not self.overwrite:
            raise FileProblemError(f"the bucket has other content under this name; {OVERWRITE}")
        return False

    def _require_same(self, opened: OpenedFile, name: str) -> None:
        """Accepts the object if another process has uploaded the same content in the meantime."""
        seen = self.store.look(name)
        if seen is None or not self._has_same_content(opened, seen[0]):
            raise ObjectChangedError
        self.report.add(there=1)

    def _has_same_content(self, opened: OpenedFile, present: StoredObject) -> bool:
        if present.size != opened.size:
            return False
        if present.checksum and streams.matches_checksum(opened.file, opened.size, present.checksum):
            return True
        if present.checksum and not streams.possible_parts(opened.size, present.checksum):
            return False
        # A list states no part sizes, and in some stores no checksums.
        seen = self.store.look(present.name)
        return seen is not None and streams.matches_checksum(opened.file, opened.size, seen[0].checksum, seen[1])


@dataclass
class _Upload:
    """The upload of one large file, in parts."""

    store: Store
    report: TransferReport
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
        for number, (start, length) in enumerate(streams.part_ranges(size, part), 1):
            workers.give(partial(self._part, upload, number, start, length, there.get(number)))
        workers.finish()
        try:
            for problem in self._changed:
                raise problem
            self.opened.require_unchanged()
            self._commit(upload)
        except (ContentChangedError, ObjectChangedError):
            # No later upload can resume with these parts.
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
        """Computes the hash before it sends, so that the store verifies the bytes that this process read."""
        digest = digest_of(self.opened.file, start, length)
        self._digests[number] = digest
        if there is not None and (there.size, there.md5) == (length, checksum_text(digest)):
            self.report.add(kept=length)
            return
        try:
            if not self._changed:
                content = Content(self.opened.file, start, length, checksum_text(digest))
                self.store.put_part(self.name, upload, number, content)
                self.report.add(sent=length)
        except FileProblemError as problem:
            self._changed.append(problem)

    def _commit(self, upload: str) -> None:
        """Commits the parts that the store lists: a part whose answer was lost may be there twice."""
        digests = [digest for _, digest in sorted(self._digests.items())]
        stored = self.store.parts(self.name, upload)
        expected = {number: checksum_text(digest) for number, digest in enumerate(digests, 1)}
        if stored is None or {number: part.md5 for number, part in stored.items()} != expected:
            raise ObjectChangedError
        if self.store.commit(self.name, upload, stored, self.replaces) != checksum_of_parts(digests):
            raise FileProblemError("the bucket states another checksum than this file has; run the same command again")
