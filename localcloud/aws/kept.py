# SPDX-License-Identifier: Apache-2.0
"""Saves moto's state on disk before a call is answered, so that it survives a kill of the cloud.

The tables of the database: `backends` has the pickled state of each moto backend; references between backends are
pickled as names. `objects` has each object of S3 with all its versions, so a put writes one row. The contents of
objects are in files, which never change. `events` has the events of log streams, a row for each addition. After a call,
only the backends that it used are compared. Pickled states name functions of this module, so their names must stay.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import marshal
import pickle
import platform
import secrets
import sqlite3
import sys
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_der_private_key

from localcloud.aws.account import ACCOUNT
from localcloud.aws.moto_state import moto_backend, moto_backends
from localcloud.aws.services import SERVICES
from localcloud.files import sqlite_transaction

_FILE = "state.sqlite3"
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_SCHEMA = """
CREATE TABLE IF NOT EXISTS backends (
    service TEXT NOT NULL, region TEXT NOT NULL, state BLOB NOT NULL, PRIMARY KEY (service, region)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
    bucket TEXT NOT NULL, name TEXT NOT NULL, state BLOB NOT NULL, PRIMARY KEY (bucket, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    stream TEXT NOT NULL, number INTEGER NOT NULL, rows TEXT NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
# An object of S3: its bucket and its name.
S3Object = tuple[str, str]
# A backend of moto: its service and its region.
Which = tuple[str, str]
# The backends that were used since the last call began.
used_backends: set[Which] = set()
log = logging.getLogger("localcloud")


def exists(folder: Path) -> bool:
    return (folder / _FILE).exists()


class SavedState:
    """The saved state of one local AWS. Only the simulation's thread uses it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contents = folder / "objects"
        self._contents.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._written: dict[tuple[str, str], bytes] = {}
        self._objects: dict[S3Object, bytes] = {}
        # How many events a log stream had at the last save, with those that were dropped.
        self._streams: dict[str, int] = {}
        self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._folder / _FILE, isolation_level=None)
        connection.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {_SCHEMA}")
        writer = connection.execute("SELECT value FROM facts WHERE name = 'written by'").fetchone()
        if writer is not None and writer[0] != _version():
            connection.close()
            aside = self._folder / f"{_FILE}.{hashlib.sha256(writer[0].encode()).hexdigest()[:8]}"
            (self._folder / _FILE).replace(aside)
            log.warning("the state of the local AWS was written by %s and is set aside in %s", writer[0], aside)
            return self._open()
        connection.execute("INSERT OR IGNORE INTO facts VALUES ('written by', ?)", (_version(),))
        return connection

    def save(self, only: Collection[Which] | None = None, touched: Collection[S3Object] | None = None) -> None:
        """Writes all changes since the last save, in one transaction. `only`: the backends that may have changed.
        `touched`: the objects of S3 that may have changed. None means all."""
        if only is None or any(service == "s3" for service, _ in only):
            _drop_empty_tags()
        changed, objects = list(self._changed(only)), list(self._changed_objects(touched))
        logs = only is None or any(service == "logs" for service, _ in only)
        added, ended = self._new_events() if logs else ([], [])
        if not changed and not objects and not added and not ended:
            return
        deleted = [which for which, versions, _ in objects if not versions]
        present = [row for row in objects if row[1]]
        connection = self._connection
        with sqlite_transaction(connection):
            connection.executemany(
                "INSERT OR REPLACE INTO backends VALUES (?, ?, ?)", [(*which, state) for which, state, _ in changed]
            )
            connection.executemany(
                "INSERT OR REPLACE INTO objects VALUES (?, ?, ?)",
                [(*which, versions) for which, versions, _ in present],
            )
            connection.executemany("DELETE FROM objects WHERE bucket = ? AND name = ?", deleted)
            connection.executemany("INSERT INTO events VALUES (?, ?, ?)", added)
            connection.executemany("DELETE FROM events WHERE stream = ? AND number < ?", ended)
        self._written |= {which: digest for which, _, digest in changed}
        self._objects |= {which: digest for which, _, digest in present}
        for which in deleted:
            del self._objects[which]
        if added or ended:
            self._streams = {key: stream.trainyard_dropped + len(stream.events) for key, stream in _streams()}

    def has_changed(self, only: Collection[Which], touched: Collection[S3Object] | None) -> bool:
        """Whether a saved backend, or an object of S3, differs from its saved state."""
        backends = (which for which, _, _ in self._changed(only) if which in self._written)
        return any(True for _ in backends) or any(True for _ in self._changed_objects(touched))

    def _changed(self, only: Collection[Which] | None) -> Iterator[tuple[Which, bytes, bytes]]:
        for which, backend in _backends():
            if only is None or which in only:
                state = _pickled(vars(backend), self._save_content)
                digest = hashlib.sha256(state).digest()
                if self._written.get(which) != digest:
                    yield which, state, digest

    def _new_events(self) -> tuple[list[tuple[str, int, str]], list[tuple[str, int]]]:
        """The events since the last save, as rows of the table, and for each stream the number at which its oldest
        event now is."""
        streams = dict(_streams())
        added, ended = [], [(key, sys.maxsize) for key in self._streams if key not in streams]
        for key, stream in streams.items():
            dropped, saved = stream.trainyard_dropped, self._streams.get(key, 0)
            events = stream.events[max(saved - dropped, 0) :]
            if events:
                rows = [[one.ingestion_time, one.timestamp, one.message, one.event_id] for one in events]
                added.append((key, max(saved, dropped), json.dumps(rows)))
            if dropped:
                row = self._connection.execute(
                    "SELECT max(number) FROM events WHERE stream = ? AND number <= ?", (key, dropped)
                ).fetchone()
                ended += [(key, row[0])] if row[0] else []
        return added, ended

    def _load_events(self) -> None:
        from moto.logs.models import LogEvent

        for key, stream in _streams():
            query = "SELECT number, rows FROM events WHERE stream = ? ORDER BY number"
            for number, rows in self._connection.execute(query, (key,)).fetchall():
                for place, values in enumerate(json.loads(rows), number):
                    if place >= stream.trainyard_dropped:
                        event = object.__new__(LogEvent)
                        event.ingestion_time, event.timestamp, event.message, event.event_id = values
                        stream.events.append(event)
                self._streams[key] = stream.trainyard_dropped + len(stream.events)

    def _changed_objects(self, touched: Collection[S3Object] | None) -> Iterator[tuple[S3Object, bytes, bytes]]:
        """The changed objects with their pickled versions, which are empty for a deleted object, and the digest."""
        objects = _all_objects()
        if touched is None:
            touched = {
                *self._objects,
                *((bucket, name) for bucket, keys in objects.items() for name in dict.keys(keys)),
            }
        for which in touched:
            versions = objects[which[0]].getlist(which[1]) if which[0] in objects else None
            state = _pickled(versions, self._save_content) if versions else b""
            digest = hashlib.sha256(state).digest() if state else b""
            if self._objects.get(which, b"") != digest:
                yield which, state, digest

    def load(self) -> None:
        """Restores moto's backends, and deletes content files that no object uses."""
        from moto.backends import get_backend
        from moto.s3.models import s3_backends

        for service in SERVICES.values():
            get_backend(service.backend).clear()
        s3_backends.bucket_accounts.clear()
        self._written.clear()
        self._objects.clear()
        self._streams.clear()
        used: set[str] = set()
        rows = self._connection.execute("SELECT service, region, state FROM backends").fetchall()
        for service, region, state in rows:
            attributes = _Unpickler(io.BytesIO(state), self._contents, used).load()
            moto_backend(service, region).__dict__.update(attributes)
            self._written[service, region] = hashlib.sha256(state).digest()
        objects = _all_objects()
        for bucket, name, state in self._connection.execute("SELECT bucket, name, state FROM objects").fetchall():
            dict.__setitem__(objects[bucket], name, _Unpickler(io.BytesIO(state), self._contents, used).load())
            self._objects[bucket, name] = hashlib.sha256(state).digest()
        self._load_events()
        for name in moto_backend("s3").buckets:
            s3_backends.bucket_accounts[name] = ("aws", ACCOUNT)
        for file in self._contents.iterdir():
            if file.name not in used:
                file.unlink()

    def _save_content(self, content: bytes) -> str:
        """Saves the content of an object, and returns the file's name."""
        name = hashlib.sha256(content).hexdigest()
        path = self._contents / name
        if not path.exists():
            draft = path.with_suffix(".new")
            draft.write_bytes(content)
            draft.replace(path)
        return name

    def close(self) -> None:
        self._connection.close()


def _version() -> str:
    from importlib.metadata import version

    return f"moto {version('moto')} on Python {'.'.join(platform.python_version_tuple()[:2])}"


def _backends() -> Iterator[tuple[Which, Any]]:
    for service in SERVICES.values():
        for region, backend in list(dict.items(moto_backends(service.backend))):
            if region == "aws" or not region.startswith("aws-"):
                yield (service.backend, region), backend


def watch_backends() -> None:
    """Changes moto's tables of backends, so that they note in `used_backends` which ones a call uses. Called once in a
    process."""
    from moto.core.base_backend import AccountSpecificBackend

    get = AccountSpecificBackend.__getitem__

    def note_use(table: Any, region: str) -> None:
        used_backends.add((table.service_name, "aws" if region == "global" else region))

    def get_noted(self: Any, region: str) -> Any:
        note_use(self, region)
        return get(self, region)

    def values_noted(self: Any) -> Any:
        for region in dict.keys(self):
            note_use(self, region)
        return dict.values(self)

    def items_noted(self: Any) -> Any:
        return zip(dict.keys(self), values_noted(self), strict=True)

    AccountSpecificBackend.__getitem__ = get_noted
    AccountSpecificBackend.values = values_noted
    AccountSpecificBackend.items = items_noted


def _streams() -> Iterator[tuple[str, Any]]:
    """Every log stream with an id of ours: a new stream of the same name is another one."""
    for (service, _), backend in _backends():
        if service == "logs":
            for group in backend.groups.values():
                for stream in group.streams.values():
                    # Streams of a state of an earlier release have no id, and their events in their own state.
                    vars(stream).setdefault("trainyard_id", secrets.token_hex(8))
                    vars(stream).setdefault("trainyard_dropped", 0)
                    yield stream.trainyard_id, stream


class _Content:
    """Replaces the content of an object in the pickled state of S3."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, save_content: Any) -> None:
        from moto.core.base_backend import BaseBackend
        from moto.logs.models import LogStream
        from moto.s3.models import FakeKey
        from moto.s3.utils import _VersionedKeyStore
        from moto.ssm.models import ParameterDict

        super().__init__(file, protocol=5)
        self._save_content = save_content
        self._backend, self._key, self._parameters = BaseBackend, FakeKey, ParameterDict
        self._objects, self._stream = _VersionedKeyStore, LogStream

    def persistent_id(self, value: Any) -> Any:
        """Must be fast, because each save calls it for every value of the state."""
        if isinstance(value, self._backend):
            return ("backend", type(value).__module__.split(".")[1], value.region_name)
        if isinstance(value, _Content):
            return ("content", value.name)
        return None

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, self._key):
            return _bare, (type(value),), _key_state(value, self._save_content), None, None, _set_key
        if isinstance(value, self._objects):
            # The objects are saved in the table `objects`.
            return type(value), ()
        if isinstance(value, self._stream):
            # The events are saved in the table `events`.
            return _bare, (type(value),), {**vars(value), "events": []}
        if isinstance(value, self._parameters):
            return _table, (type(value), value.default_factory), _as_new(value), None, _of_account(value)
        if isinstance(value, defaultdict) and type(value) is not defaultdict:
            return _table, (type(value), value.default_factory), vars(value), None, iter(dict.items(value))
        if isinstance(value, RSAPrivateKey | EllipticCurvePrivateKey):
            return _private_key, (value.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),)
        if isinstance(value, _LOCKS):
            return _lock, (_LOCKS.index(type(value)),)
        if isinstance(value, FunctionType) and "<" in value.__qualname__ and not value.__closure__:
            return _function, (marshal.dumps(value.__code__), value.__module__, value.__name__)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    """Reads pickles. This is safe, because only the cloud's user can write to the folder, and no cloud starts in one
    that a commit brought (localcloud/control.py)."""

    def __init__(self, file: io.BytesIO, contents: Path, used: set[str]) -> None:
        super().__init__(file)
        self._contents = contents
        self._used = used

    def persistent_load(self, named: Any) -> Any:
        if named[0] == "content":
            self._used.add(named[1])
            return (self._contents / named[1]).read_bytes()
        return moto_backend(named[1], named[2])


def _all_objects() -> dict[str, Any]:
    """The objects of each bucket, by the bucket's name."""
    return {name: bucket.keys for name, bucket in moto_backend("s3").buckets.items()}


def _drop_empty_tags() -> None:
    """Deletes moto's tag entries of objects without tags. moto never does, so each save would write more and more."""
    tags = moto_backend("s3").tagger.tags
    for arn in [arn for arn, row in tags.items() if not row]:
        del tags[arn]


def _pickled(value: Any, save_content: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file, save_content).dump(value)
    return file.getvalue()


def _key_state(key: Any, save_content: Any) -> dict[str, Any]:
    """The state of an S3 object, with its content in a file. The file's name is cached on the object, with a mark of
    the content, so that a save need not hash the content again."""
    state = {name: value for name, value in vars(key).items() if name not in ("_value_buffer", "lock", "trainyard_at")}
    at = vars(key).get("trainyard_at")
    mark = (id(key._value_buffer), key.contentsize, key._etag)
    if at is None or at[0] != mark:
        key.trainyard_at = at = (mark, save_content(key.value))
    return {**state, "value": _Content(at[1])}


def _set_key(key: Any, state: dict[str, Any]) -> None:
    key.__setstate__(state)


def _bare(kind: type) -> Any:
    return object.__new__(kind)


def _table(kind: Any, factory: Any) -> Any:
    """Creates a table of a class whose constructor needs other arguments than a `defaultdict`'s."""
    made = kind.__new__(kind)
    defaultdict.__init__(made, factory)
    return made


def _as_new(parameters: Any) -> dict[str, Any]:
    """The state of the table, without marks that moto has loaded AWS's own parameters. moto loads them again on
    demand."""
    return {name: False if name.endswith("_loaded") else value for name, value in vars(parameters).items()}


def _of_account(parameters: Any) -> Iterator[tuple[str, Any]]:
    """The account's parameters, without the thousands that AWS provides."""
    return ((name, versions) for name, versions in dict.items(parameters) if not name.startswith("/aws/"))


def _private_key(content: bytes) -> Any:
    return load_der_private_key(content, None)


def _lock(which: int) -> Any:
    return (threading.Lock, threading.RLock)[which]()


def _function(code: bytes, module: str, name: str) -> Any:
    """Restores a function that moto defines inside another one, such as the default factory of a table."""
    loaded = marshal.loads(code)
    if not isinstance(loaded, CodeType):
        raise TypeError(name)
    return FunctionType(loaded, vars(sys.modules[module]), name)
