# SPDX-License-Identifier: Apache-2.0
"""The running local cloud, as all its platforms share it: its state on disk, its APIs, and its marker."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from catalog.version import VERSION
from localcloud.files import sqlite_transaction
from localcloud.server.faults import Faults
from localcloud.server.http import HttpApi, Reply, Request

# The marker: the unsigned answer by which our clients recognise a local cloud. No real endpoint gives it.
MARKER_PATH = "/.trainyard"
MARKER_NAME = "trainyard-local"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS progress (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, bucket TEXT NOT NULL, name TEXT NOT NULL, moment REAL NOT NULL,
    point TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS by_status ON progress (bucket, name, sequence);
"""


class StateFile:
    """The state on disk: one SQLite file, with one transaction per request, so that it is consistent after a kill.

    All platforms share the table `progress`. A platform may add tables of its own. Only one thread may use the file.
    Writes need `transaction`.
    """

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=NORMAL")
        # The same pages are written repeatedly. With fewer checkpoints, each page is copied less often.
        self.connection.execute("PRAGMA wal_autocheckpoint=4000")
        self.connection.executescript(_SCHEMA)

    def close(self) -> None:
        self.connection.close()

    @property
    def changes(self) -> int:
        """A number that grows with every changed row."""
        return self.connection.total_changes

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self.connection.in_transaction:
            yield
            return
        with sqlite_transaction(self.connection):
            yield


class MachineHosts(Protocol):
    """The hosts of a platform's machines, from which the counts of firewalls are read."""

    def has(self, machine: str) -> bool: ...

    async def evidence(self, machine: str) -> Mapping[str, Any]: ...


class CallRecord(Protocol):
    """The access decisions of an API, as rows with numbers."""

    @property
    def forgotten(self) -> int: ...

    def since(self, number: int) -> list[dict[str, Any]]: ...


@dataclass(kw_only=True)
class ServedCloud:
    """The local cloud that this process serves: its folder, its endpoint, and its APIs."""

    home: Path
    store: StateFile
    endpoint: str = ""
    isolation: str = ""
    faults: Faults = field(init=False)
    # The first API that takes a request answers it.
    apis: Sequence[HttpApi] = ()
    # The facts in the marker, by which clients recognise the cloud and its accounts, from all platforms.
    facts: Mapping[str, str] = field(default_factory=dict)
    other_hosts: list[MachineHosts] = field(default_factory=list)
    # The records of access decisions of APIs that have their own, by the name of the API.
    records: dict[str, CallRecord] = field(default_factory=dict)

    async def evidence(self, machine: str) -> Mapping[str, Any]:
        """The counts of the firewalls of a run's machine, up to now or to its end."""
        return await next(one for one in self.other_hosts if one.has(machine)).evidence(machine)


def answer_marker(cloud: ServedCloud, request: Request) -> Reply:
    """The marker, for everybody on this machine. Web pages of other host names get nothing, and nodes only the part by
    which they recognise the cloud."""
    if request.of_a_node:
        return Reply(200, {"cloud": MARKER_NAME, "version": VERSION})
    if not is_for_this_machine(request, cloud.endpoint):
        return Reply(403, {"message": "the marker answers to 127.0.0.1 and localhost only"})
    return Reply(200, {"cloud": MARKER_NAME, "version": VERSION, **cloud.facts})


def is_for_this_machine(request: Request, endpoint: str) -> bool:
    """Whether the Host header names this machine, and not a name that merely resolves to it."""
    port = endpoint.rpartition(":")[2]
    return "host" not in request.repeated and request.headers.get("host") in (f"127.0.0.1:{port}", f"localhost:{port}")
