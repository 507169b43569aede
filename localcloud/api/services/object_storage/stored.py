# SPDX-License-Identifier: Apache-2.0
"""Objects as rows: the current version of each, and the earlier versions if the bucket keeps them.

The bytes of each version are in a file that is named after the version id. So no object name ever becomes a path, and
no file ever changes.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from localcloud.api import clock
from localcloud.api.errors import invalid
from localcloud.api.operations import ApiCall
from localcloud.api.store import StateStore, StoredResource

COLUMNS = "bucket, name, file, size, md5, etag, created, modified, headers"
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
MULTIPART_MD5 = "opc-multipart-md5"


@dataclass(frozen=True)
class StoredObject:
    """One version of an object. A marker records a deletion, and has no bytes."""

    bucket: str
    name: str
    size: int
    md5: str
    headers: Mapping[str, str]
    created: float
    modified: float = field(default_factory=clock.now)
    file: str = field(default_factory=lambda: uuid.uuid4().hex)
    etag: str = field(default_factory=lambda: str(uuid.uuid4()))
    marker: bool = False

    @property
    def receipt(self) -> dict[str, str]:
        """The headers that answer a write."""
        return {"etag": self.etag, "last-modified": clock.http_date(self.modified), "version-id": self.file}


def sound_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers in lower case. InvalidParameter for a name or value that HTTP cannot send as a header."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value) or value != value.strip():
            raise invalid(f"{name!r} with the value {value[:80]!r} cannot be a header")
    return {name.lower(): value for name, value in headers.items()}


def lookup(store: StateStore, bucket: str, name: str) -> StoredObject | None:
    """The current version, if there is one."""
    return _one(store, f"SELECT {COLUMNS}, 0 FROM objects WHERE bucket = ? AND name = ?", bucket, name)


def lookup_version(store: StateStore, bucket: str, name: str, version: str) -> StoredObject | None:
    current = lookup(store, bucket, name)
    if current and current.file == version:
        return current
    where = "bucket = ? AND name = ? AND file = ?"
    return _one(store, f"SELECT {COLUMNS}, marker FROM versions WHERE {where}", bucket, name, version)


def files_in_use(store: StateStore) -> set[str]:
    queries = ("SELECT file FROM objects", "SELECT file FROM versions", "SELECT file FROM parts")
    return {row[0] for query in queries for row in store.connection.execute(query)}


def keep(call: ApiCall, bucket: StoredResource, item: StoredObject) -> None:
    """Makes this the current version. The bucket's settings decide whether the previous one is kept."""
    _retire(call, bucket, lookup(call.store, bucket.id, item.name))
    _insert(call.store, "objects", item)


def remove(call: ApiCall, bucket: StoredResource, current: StoredObject) -> StoredObject | None:
    """Removes the current version. Returns the marker that replaces it if the bucket keeps versions."""
    call.store.connection.execute("DELETE FROM objects WHERE bucket = ? AND name = ?", (bucket.id, current.name))
    _retire(call, bucket, current)
    if not keeps_versions(bucket):
        return None
    marker = StoredObject(bucket.id, current.name, 0, "", {}, created=clock.now(), marker=True)
    _insert(call.store, "versions", marker)
    return marker


def remove_version(call: ApiCall, bucket: StoredResource, item: StoredObject) -> None:
    """Deletes one version for good. If it was the newest, the previous one becomes current again."""
    for table in ("objects", "versions"):
        call.store.connection.execute(f"DELETE FROM {table} WHERE file = ?", (item.file,))
    discard(call, item.file)
    newest = next(_versions(call.store, bucket.id, item.name), None)
    if newest and not newest.marker and lookup(call.store, bucket.id, item.name) is None:
        call.store.connection.execute("DELETE FROM versions WHERE file = ?", (newest.file,))
        _insert(call.store, "objects", newest)


def rename(store: StateStore, item: StoredObject, name: str) -> StoredObject:
    store.connection.execute("DELETE FROM objects WHERE bucket = ? AND name = ?", (item.bucket, item.name))
    renamed = replace(item, name=name, etag=str(uuid.uuid4()), modified=clock.now())
    _insert(store, "objects", renamed)
    return renamed


def keeps_versions(bucket: StoredResource) -> bool:
    return bool(bucket.body.get("versioning") == "Enabled")


def discard(call: ApiCall, file: str) -> None:
    """Deletes a file after the commit, when no row names it any more."""
    path: Path = call.cloud.objects / file
    call.after_commit.append(lambda: path.unlink(missing_ok=True))


def read(row: tuple[Any, ...]) -> StoredObject:
    bucket, name, file, size, md5, etag, created, modified, headers, marker = row
    return StoredObject(
        bucket, name, size, md5, json.loads(headers), created, modified, file, etag, bool(marker)
    )  # fmt: skip


def _retire(call: ApiCall, bucket: StoredResource, item: StoredObject | None) -> None:
    if item is None:
        return
    if keeps_versions(bucket):
        _insert(call.store, "versions", item)
    else:
        discard(call, item.file)


def _versions(store: StateStore, bucket: str, name: str) -> Iterator[StoredObject]:
    query = f"SELECT {COLUMNS}, marker FROM versions WHERE bucket = ? AND name = ? ORDER BY sequence DESC"
    return map(read, store.connection.execute(query, (bucket, name)))


def _one(store: StateStore, query: str, *values: str) -> StoredObject | None:
    row = store.connection.execute(query, values).fetchone()
    return read(row) if row else None


def _insert(store: StateStore, table: str, item: StoredObject) -> None:
    values: list[Any] = [
        item.bucket, item.name, item.file, item.size, item.md5, item.etag, item.created, item.modified,
        json.dumps(dict(item.headers)),
    ]  # fmt: skip
    columns = COLUMNS
    if table == "versions":
        columns, values = f"{columns}, marker", [*values, item.marker]
    marks = ", ".join("?" * len(values))
    store.connection.execute(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})", values)
