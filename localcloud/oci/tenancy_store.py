# SPDX-License-Identifier: Apache-2.0
"""A tenancy's state on disk: its resources, objects, logs and metrics as tables of the cloud's file."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from catalog.nested import walk_texts
from components.oci.iam.statement import fits_pattern
from localcloud.oci.log_query import FITS
from localcloud.oci.oci_errors import etag_mismatch
from localcloud.oci.ocids import new_ocid
from localcloud.server import http
from localcloud.server.cloud import StateFile

_SCHEMA = """
CREATE TABLE IF NOT EXISTS resources (
    sequence INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, compartment TEXT NOT NULL,
    parent TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, settling TEXT NOT NULL, settles_at REAL NOT NULL,
    live INTEGER NOT NULL, etag TEXT NOT NULL, created REAL NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS by_compartment ON resources (kind, compartment, sequence);
CREATE INDEX IF NOT EXISTS by_parent ON resources (kind, parent, sequence);
CREATE INDEX IF NOT EXISTS by_name ON resources (kind, name);
CREATE INDEX IF NOT EXISTS deleted ON resources (sequence) WHERE NOT live;
CREATE TABLE IF NOT EXISTS mentions (
    source TEXT NOT NULL, target TEXT NOT NULL, PRIMARY KEY (source, target)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_target ON mentions (target);
CREATE TABLE IF NOT EXISTS objects (
    bucket TEXT NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL, size INTEGER NOT NULL, md5 TEXT NOT NULL,
    etag TEXT NOT NULL, created REAL NOT NULL, modified REAL NOT NULL, headers TEXT NOT NULL,
    PRIMARY KEY (bucket, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS versions (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, bucket TEXT NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL, md5 TEXT NOT NULL, etag TEXT NOT NULL, created REAL NOT NULL, modified REAL NOT NULL,
    headers TEXT NOT NULL, marker INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS by_object ON versions (bucket, name, sequence);
CREATE TABLE IF NOT EXISTS uploads (
    id TEXT NOT NULL PRIMARY KEY, bucket TEXT NOT NULL, name TEXT NOT NULL, created REAL NOT NULL,
    details TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_bucket ON uploads (bucket, name);
CREATE TABLE IF NOT EXISTS parts (
    upload TEXT NOT NULL, number INTEGER NOT NULL, file TEXT NOT NULL, size INTEGER NOT NULL, md5 TEXT NOT NULL,
    etag TEXT NOT NULL, PRIMARY KEY (upload, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blobs (
    repository TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (repository, digest)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS log_lines (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, log TEXT NOT NULL, time REAL NOT NULL, ingested REAL NOT NULL,
    id TEXT NOT NULL, source TEXT NOT NULL, subject TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
    owner TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS by_log ON log_lines (log, time);
CREATE TABLE IF NOT EXISTS log_usage (
    log TEXT NOT NULL, owner TEXT NOT NULL, bytes REAL NOT NULL, PRIMARY KEY (log, owner)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS metrics (
    compartment TEXT NOT NULL, namespace TEXT NOT NULL, resource_group TEXT NOT NULL, name TEXT NOT NULL,
    dimensions TEXT NOT NULL, time REAL NOT NULL, value REAL NOT NULL, count INTEGER NOT NULL, metadata TEXT NOT NULL,
    PRIMARY KEY (compartment, namespace, resource_group, name, dimensions, time)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_time ON metrics (time);
CREATE TABLE IF NOT EXISTS retries (
    token TEXT NOT NULL, principal TEXT NOT NULL, operation TEXT NOT NULL, digest TEXT NOT NULL,
    status INTEGER NOT NULL, headers TEXT NOT NULL, body TEXT NOT NULL, resource TEXT NOT NULL, created REAL NOT NULL,
    PRIMARY KEY (token, principal, operation)) WITHOUT ROWID;
"""
_FAULT = "fault"
# References that do not prevent a deletion: nearly all resources mention their compartment and their creator.
_NOT_RECORDED = ("ocid1.compartment.", "ocid1.tenancy.", "ocid1.user.")
_COLUMNS = "id, kind, compartment, parent, name, state, settling, settles_at, live, etag, created, body"


@dataclass(frozen=True)
class StoredResource:
    """A resource. `body`: the fields that clients read, by their names on the wire, without the state."""

    id: str
    kind: str
    compartment: str
    name: str
    state: str
    body: Mapping[str, Any]
    parent: str = ""
    settling: str = ""
    settles_at: float = 0.0
    live: bool = True
    etag: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: float = field(default_factory=http.current_moment)

    @property
    def shown_state(self) -> str:
        """The state that clients read now: `settling` during a transition, then `state`."""
        return self.settling if self.settles_at > http.current_moment() else self.state

    def require_etag(self, if_match: str | None) -> None:
        if if_match not in (None, "*", self.etag):
            raise etag_mismatch()


class StateStore(StateFile):
    """The tables of one tenancy."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.connection.create_function(FITS, 2, fits_pattern, deterministic=True)
        self.connection.executescript(_SCHEMA)
        if "owner" not in [column[1] for column in self.connection.execute("PRAGMA table_info(log_lines)")]:
            self.connection.execute("ALTER TABLE log_lines ADD COLUMN owner TEXT NOT NULL DEFAULT ''")
        self.connection.execute("CREATE INDEX IF NOT EXISTS by_owner ON log_lines (log, owner)")

    def add(self, resource: StoredResource) -> StoredResource:
        self.connection.execute(
            f"INSERT INTO resources ({_COLUMNS}) VALUES ({', '.join('?' * 12)})",
            (
                resource.id, resource.kind, resource.compartment, resource.parent, resource.name, resource.state,
                resource.settling, resource.settles_at, resource.live, resource.etag, resource.created,
                json.dumps(resource.body),
            ),
        )  # fmt: skip
        self._record_mentions(resource)
        return resource

    def put(self, resource: StoredResource, **changes: Any) -> StoredResource:
        """Stores the resource with these changes and a new etag."""
        changed = replace(resource, **changes, etag=uuid.uuid4().hex)
        self.connection.execute(
            "UPDATE resources SET compartment=?, parent=?, name=?, state=?, settling=?, settles_at=?, live=?, etag=?,"
            " body=? WHERE id=?",
            (
                changed.compartment, changed.parent, changed.name, changed.state, changed.settling, changed.settles_at,
                changed.live, changed.etag, json.dumps(changed.body), changed.id,
            ),
        )  # fmt: skip
        self._record_mentions(changed)
        return changed

    def get(self, identifier: str) -> StoredResource | None:
        rows = self.select("id = ?", (identifier,))
        return rows[0] if rows else None

    def live(self, kind: str, **columns: str) -> list[StoredResource]:
        """The living resources of a kind whose columns have these values, oldest first."""
        wanted = "".join(f" AND {column} = ?" for column in columns)
        return self.select(f"kind = ? AND live{wanted} ORDER BY sequence", (kind, *columns.values()))

    def select(self, where: str, values: Sequence[object]) -> list[StoredResource]:
        rows = self.connection.execute(f"SELECT {_COLUMNS} FROM resources WHERE {where}", values)
        return [
            StoredResource(
                identifier, kind, compartment, name, state, json.loads(body), parent, settling, until, bool(live), etag,
                created,
            )
            for identifier, kind, compartment, parent, name, state, settling, until, live, etag, created, body in rows
        ]  # fmt: skip

    def mentioning(self, identifier: str, kinds: Iterable[str]) -> list[StoredResource]:
        """The living resources of these kinds whose bodies name the identifier."""
        wanted = tuple(kinds)
        if not wanted:
            return []
        return self.select(
            f"kind IN ({', '.join('?' * len(wanted))}) AND live"
            " AND id IN (SELECT source FROM mentions WHERE target = ?) ORDER BY sequence",
            (*wanted, identifier),
        )

    def _record_mentions(self, resource: StoredResource) -> None:
        self.connection.execute("DELETE FROM mentions WHERE source = ?", (resource.id,))
        if resource.live:
            targets = {target for target in ocids_in(resource.body) if not target.startswith(_NOT_RECORDED)}
            rows = [(resource.id, target) for target in targets - {resource.id}]
            self.connection.executemany("INSERT INTO mentions (source, target) VALUES (?, ?)", rows)


def ocids_in(value: Any) -> Iterator[str]:
    return (text for text in walk_texts(value) if text.startswith("ocid1."))


class FaultTable:
    """Stores faults as resources without a compartment. It implements `localcloud.server.faults.FaultRows`."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def load(self) -> list[Mapping[str, Any]]:
        return [row.body for row in self._store.live(_FAULT)]

    def new_id(self) -> str:
        return new_ocid(_FAULT, "")

    def add(self, identifier: str, name: str, row: Mapping[str, Any]) -> None:
        self._store.add(StoredResource(identifier, _FAULT, "", name, "", row))

    def change(self, identifier: str, row: Mapping[str, Any]) -> None:
        stored = self._store.get(identifier)
        if stored is not None:
            self._store.put(stored, body=row)

    def remove(self, identifier: str) -> None:
        self._store.connection.execute("DELETE FROM resources WHERE id = ?", (identifier,))
