# SPDX-License-Identifier: Apache-2.0
"""Objects and their versions in the store, and their lists, ordered by name. A delimiter groups names by prefix."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from pathlib import Path
from typing import Any

from localcloud.oci.operations import ApiCall
from localcloud.oci.paging import limit_of, read_page, write_page
from localcloud.oci.services.object_storage import buckets
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server import http
from localcloud.server.api_errors import invalid_parameter
from localcloud.server.http import Json, Reply

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
    modified: float = field(default_factory=http.current_moment)
    file: str = field(default_factory=lambda: uuid.uuid4().hex)
    etag: str = field(default_factory=lambda: str(uuid.uuid4()))
    marker: bool = False

    @property
    def version_headers(self) -> dict[str, str]:
        """The headers that identify this version."""
        return {"etag": self.etag, "last-modified": http.format_http_date(self.modified), "version-id": self.file}


# The fields of a summary, by the names that `fields=` uses.
_SUMMARY: Mapping[str, Callable[[StoredObject], Any]] = {
    "name": lambda item: item.name,
    "size": lambda item: item.size,
    "md5": lambda item: item.md5,
    "etag": lambda item: item.etag,
    "timeCreated": lambda item: http.format_rfc3339(item.created),
    "timeModified": lambda item: http.format_rfc3339(item.modified),
    "storageTier": lambda item: item.headers.get("storage-tier", "Standard"),
}
_NOT_SHOWN = frozenset({"archivalState"})  # a valid field, but nothing here is archived
_DELIMITERS = ("", "/")


def valid_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers in lower case. InvalidParameter for a name or value that HTTP cannot send as a header."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value) or value != value.strip():
            raise invalid_parameter(f"{name!r} with the value {value[:80]!r} cannot be a header")
    return {name.lower(): value for name, value in headers.items()}


def find_object(store: StateStore, bucket: str, name: str) -> StoredObject | None:
    """The current version, if there is one."""
    return _select_object(store, f"SELECT {COLUMNS}, 0 FROM objects WHERE bucket = ? AND name = ?", bucket, name)


def lookup_version(store: StateStore, bucket: str, name: str, version: str) -> StoredObject | None:
    current = find_object(store, bucket, name)
    if current and current.file == version:
        return current
    where = "bucket = ? AND name = ? AND file = ?"
    return _select_object(store, f"SELECT {COLUMNS}, marker FROM versions WHERE {where}", bucket, name, version)


def files_in_use(store: StateStore) -> set[str]:
    queries = ("SELECT file FROM objects", "SELECT file FROM versions", "SELECT file FROM parts")
    return {row[0] for query in queries for row in store.connection.execute(query)}


def make_current(call: ApiCall, bucket: StoredResource, item: StoredObject) -> None:
    """Makes this the current version. The bucket's settings decide whether the previous one is kept."""
    _retire_version(call, bucket, find_object(call.store, bucket.id, item.name))
    _insert_object(call.store, "objects", item)


def remove_object(call: ApiCall, bucket: StoredResource, current: StoredObject) -> StoredObject | None:
    """Removes the current version. Returns the marker that replaces it if the bucket keeps versions."""
    call.store.connection.execute("DELETE FROM objects WHERE bucket = ? AND name = ?", (bucket.id, current.name))
    _retire_version(call, bucket, current)
    if not keeps_versions(bucket):
        return None
    marker = StoredObject(bucket.id, current.name, 0, "", {}, created=http.current_moment(), marker=True)
    _insert_object(call.store, "versions", marker)
    return marker


def remove_version(call: ApiCall, bucket: StoredResource, item: StoredObject) -> None:
    """Deletes one version for good. If it was the newest, the previous one becomes current again."""
    for table in ("objects", "versions"):
        call.store.connection.execute(f"DELETE FROM {table} WHERE file = ?", (item.file,))
    discard_file(call, item.file)
    query = f"SELECT {COLUMNS}, marker FROM versions WHERE bucket = ? AND name = ? ORDER BY sequence DESC"
    newest = next(map(object_of_row, call.store.connection.execute(query, (bucket.id, item.name))), None)
    if newest and not newest.marker and find_object(call.store, bucket.id, item.name) is None:
        call.store.connection.execute("DELETE FROM versions WHERE file = ?", (newest.file,))
        _insert_object(call.store, "objects", newest)


def rename_stored_object(store: StateStore, item: StoredObject, name: str) -> StoredObject:
    store.connection.execute("DELETE FROM objects WHERE bucket = ? AND name = ?", (item.bucket, item.name))
    renamed = replace(item, name=name, etag=str(uuid.uuid4()), modified=http.current_moment())
    _insert_object(store, "objects", renamed)
    return renamed


def keeps_versions(bucket: StoredResource) -> bool:
    return bool(bucket.body.get("versioning") == "Enabled")


def discard_file(call: ApiCall, file: str) -> None:
    """Deletes a file after the commit, when no row refers to it any more."""
    path: Path = call.cloud.objects / file
    call.after_commit.append(lambda: path.unlink(missing_ok=True))


def object_of_row(row: tuple[Any, ...]) -> StoredObject:
    bucket, name, file, size, md5, etag, created, modified, headers, marker = row
    return StoredObject(
        bucket, name, size, md5, json.loads(headers), created, modified, file, etag, bool(marker)
    )  # fmt: skip


def _retire_version(call: ApiCall, bucket: StoredResource, item: StoredObject | None) -> None:
    if item is None:
        return
    if keeps_versions(bucket):
        _insert_object(call.store, "versions", item)
    else:
        discard_file(call, item.file)


def _select_object(store: StateStore, query: str, *values: str) -> StoredObject | None:
    row = store.connection.execute(query, values).fetchone()
    return object_of_row(row) if row else None


def _insert_object(store: StateStore, table: str, item: StoredObject) -> None:
    values: list[Any] = [
        item.bucket, item.name, item.file, item.size, item.md5, item.etag, item.created, item.modified,
        json.dumps(dict(item.headers)),
    ]  # fmt: skip
    columns = COLUMNS
    if table == "versions":
        columns, values = f"{columns}, marker", [*values, item.marker]
    marks = ", ".join("?" * len(values))
    store.connection.execute(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})", values)


def answer_with_objects(call: ApiCall) -> Reply:
    bucket = buckets.find_bucket(call)
    rows = select_objects(call.store, bucket, call.query)
    fields = ("name", *_requested_fields(call, ()))
    items, prefixes, following = _cut_page(call, rows)
    body: Json = {"objects": [_render_object(item, fields) for item in items]}
    if call.query.get("delimiter"):
        body["prefixes"] = prefixes
    if following:
        body["nextStartWith"] = following.name
    return Reply(200, body)


def list_versions(call: ApiCall) -> Reply:
    bucket = buckets.find_bucket(call)
    page = call.query.get("page")
    rows = select_objects(call.store, bucket, call.query, "versions")
    if page:
        position = (name, _) = tuple(read_page(page, 2))
        # The version at this position may have been deleted since: continue with the next name.
        rows = dropwhile(lambda item: (item.name, item.file) != position and item.name <= str(name), rows)
    fields = ("name", "timeModified", *_requested_fields(call, ("size", "timeCreated", "md5", "etag", "storageTier")))
    items, prefixes, following = _cut_page(call, rows)
    shown = [{**_render_object(item, fields), "versionId": item.file, "isDeleteMarker": item.marker} for item in items]
    headers = {"opc-next-page": write_page([following.name, following.file])} if following else {}
    return Reply(200, {"items": shown, "prefixes": prefixes}, headers)


def _cut_page(call: ApiCall, rows: Iterator[StoredObject]) -> tuple[list[StoredObject], list[str], StoredObject | None]:
    """Items and prefixes up to the limit, and the first item after them."""
    prefix, delimiter = call.query.get("prefix", ""), call.query.get("delimiter", "")
    if delimiter not in _DELIMITERS:
        raise invalid_parameter("the only delimiter is /")
    limit = limit_of(call.query, 1000)
    items: list[StoredObject] = []
    prefixes: list[str] = []
    for item in rows:
        head, deeper, _ = item.name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
        if deeper and prefixes and prefixes[-1] == prefix + head + deeper:
            continue
        if len(items) + len(prefixes) == limit:
            return items, prefixes, item
        if deeper:
            prefixes.append(prefix + head + deeper)
        else:
            items.append(item)
    return items, prefixes, None


def select_objects(
    store: StateStore, bucket: StoredResource, query: Mapping[str, str], also: str = ""
) -> Iterator[StoredObject]:
    prefix = query.get("prefix", "")
    where = ["bucket = ?", "name >= ?", "substr(name, 1, ?) = ?"]
    values: list[Any] = [bucket.id, prefix, len(prefix), prefix]
    for parameter, comparison in (("start", ">="), ("startAfter", ">"), ("end", "<")):
        if parameter in query:
            where.append(f"name {comparison} ?")
            values.append(query[parameter])
    condition = " AND ".join(where)
    select = f"SELECT {COLUMNS}, 0 AS marker, 9e18 AS sequence FROM objects WHERE {condition}"
    if also:
        select += f" UNION ALL SELECT {COLUMNS}, marker, sequence FROM {also} WHERE {condition}"
        values *= 2
    for row in store.connection.execute(f"{select} ORDER BY name, sequence DESC", values):
        yield object_of_row(row[:-1])


def _requested_fields(call: ApiCall, default: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name for name in call.query.get("fields", "").split(",") if name)
    if unknown := [name for name in names if name not in _SUMMARY and name not in _NOT_SHOWN]:
        raise invalid_parameter(
            f"{unknown[0]!r} is not a field of an object: {', '.join(sorted({*_SUMMARY, *_NOT_SHOWN}))}"
        )
    return tuple(name for name in names if name in _SUMMARY) or default


def _render_object(item: StoredObject, fields: tuple[str, ...]) -> Json:
    return {name: _SUMMARY[name](item) for name in fields}
