# SPDX-License-Identifier: Apache-2.0
"""Lists of objects and of their versions, in the order of their names. A delimiter joins deeper names to prefixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from localcloud.api import clock
from localcloud.api.errors import invalid
from localcloud.api.http import Json, Reply
from localcloud.api.operations import ApiCall
from localcloud.api.paging import limit_of, read_page, write_page
from localcloud.api.services.object_storage import buckets
from localcloud.api.services.object_storage.stored import COLUMNS, StoredObject, read
from localcloud.api.store import StateStore, StoredResource

# The fields of a summary, by the names that `fields=` uses.
_SUMMARY: Mapping[str, Callable[[StoredObject], Any]] = {
    "name": lambda item: item.name,
    "size": lambda item: item.size,
    "md5": lambda item: item.md5,
    "etag": lambda item: item.etag,
    "timeCreated": lambda item: clock.rfc3339(item.created),
    "timeModified": lambda item: clock.rfc3339(item.modified),
    "storageTier": lambda item: item.headers.get("storage-tier", "Standard"),
}
_NOT_SHOWN = frozenset({"archivalState"})  # a valid field, but nothing here is archived
_DELIMITERS = ("", "/")


def list_objects(call: ApiCall) -> Reply:
    bucket = buckets.find(call)
    rows = select_objects(call.store, bucket, call.query)
    fields = ("name", *_fields(call, ()))
    items, prefixes, following = _cut(call, rows)
    body: Json = {"objects": [_shown(item, fields) for item in items]}
    if call.query.get("delimiter"):
        body["prefixes"] = prefixes
    if following:
        body["nextStartWith"] = following.name
    return Reply(200, body)


def list_versions(call: ApiCall) -> Reply:
    bucket = buckets.find(call)
    page = call.query.get("page")
    rows = select_objects(call.store, bucket, call.query, "versions")
    if page:
        position = tuple(read_page(page, 2))
        rows = iter(_from_page(rows, position))
    fields = ("name", "timeModified", *_fields(call, ("size", "timeCreated", "md5", "etag", "storageTier")))
    items, prefixes, following = _cut(call, rows)
    shown = [{**_shown(item, fields), "versionId": item.file, "isDeleteMarker": item.marker} for item in items]
    headers = {"opc-next-page": write_page([following.name, following.file])} if following else {}
    return Reply(200, {"items": shown, "prefixes": prefixes}, headers)


def _from_page(rows: Iterable[StoredObject], position: tuple[Any, ...]) -> Iterator[StoredObject]:
    reached = False
    for item in rows:
        # The version at this position may have been deleted since: continue with the next name.
        reached = reached or (item.name, item.file) == position or item.name > str(position[0])
        if reached:
            yield item


def _cut(call: ApiCall, rows: Iterator[StoredObject]) -> tuple[list[StoredObject], list[str], StoredObject | None]:
    """Items and prefixes up to the limit, and the first item after them."""
    prefix, delimiter = call.query.get("prefix", ""), call.query.get("delimiter", "")
    if delimiter not in _DELIMITERS:
        raise invalid("the only delimiter is /")
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
        yield read(row[:-1])


def _fields(call: ApiCall, default: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name for name in call.query.get("fields", "").split(",") if name)
    if unknown := [name for name in names if name not in _SUMMARY and name not in _NOT_SHOWN]:
        raise invalid(f"{unknown[0]!r} is not a field of an object: {', '.join(sorted({*_SUMMARY, *_NOT_SHOWN}))}")
    return tuple(name for name in names if name in _SUMMARY) or default


def _shown(item: StoredObject, fields: tuple[str, ...]) -> Json:
    return {name: _SUMMARY[name](item) for name in fields}
