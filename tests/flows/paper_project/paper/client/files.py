# SPDX-License-Identifier: Apache-2.0
"""A drawer of the desk as a store: each file in it is an object."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from components.platform.files import Content, Sink, StoredObject, StoredPart, StoreOpeners, StoreRequest


def _md5(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content).digest()).decode()


class Drawer:
    """`components.platform.files.Store`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.uploads = folder, folder.parent / f".{folder.name}"

    @property
    def address(self) -> str:
        return str(self.folder)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return (self._seen(path) for path in files if self._name(path).startswith(prefix))

    def look(self, name: str) -> tuple[StoredObject, int | None] | None:
        path = self.folder / name
        return (self._seen(path), None) if path.is_file() else None

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _seen(self, path: Path) -> StoredObject:
        md5, now = _md5(path.read_bytes()), datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return StoredObject(self._name(path), path.stat().st_size, md5, md5, now.isoformat())

    def read(self, item: StoredObject, start: int, length: int, sink: Sink) -> None:
        sink.restart()
        sink.take((self.folder / item.name).read_bytes()[start : start + length])

    def put(self, name: str, content: Content, replaces: StoredObject | None) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.pread(content.file, content.size, content.start))

    def begin(self, name: str, part_bytes: int, replaces: StoredObject | None) -> str:
        upload = secrets.token_hex(4)
        (self.uploads / upload).mkdir(parents=True)
        return upload

    def parts(self, name: str, upload: str) -> dict[int, StoredPart] | None:
        folder = self.uploads / upload
        rows = ((int(path.name), path.read_bytes()) for path in folder.glob("*"))
        return (
            {number: StoredPart(len(part), _md5(part), _md5(part)) for number, part in rows}
            if folder.exists()
            else None
        )

    def put_part(self, name: str, upload: str, number: int, content: Content) -> None:
        (self.uploads / upload / str(number)).write_bytes(os.pread(content.file, content.size, content.start))

    def commit(self, name: str, upload: str, parts: Mapping[int, StoredPart], replaces: StoredObject | None) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join((self.uploads / upload / str(number)).read_bytes() for number in sorted(parts)))
        self.abandon(name, upload)
        return _md5(path.read_bytes())

    def abandon(self, name: str, upload: str) -> None:
        for part in (self.uploads / upload).glob("*"):
            part.unlink()
        (self.uploads / upload).rmdir()


class Opener:
    """`components.platform.files.StoreOpener`."""

    def __init__(self, desk: Path) -> None:
        self.desk = desk

    def bucket(self, name: str) -> Drawer:
        folder = self.desk / "drawers" / name
        folder.mkdir(parents=True, exist_ok=True)
        return Drawer(folder)

    def folder(self, address: str) -> tuple[Drawer, str]:
        return Drawer(Path(address)), ""


def make(request: StoreRequest) -> Opener:
    return Opener(Path(str(request.where.config["trainyard:desk"])))


STORE_OPENERS = StoreOpeners(make)
