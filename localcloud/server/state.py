# SPDX-License-Identifier: Apache-2.0
"""The state on disk that all platforms share: one SQLite file, with one transaction per request, so that it is
consistent after a kill. `localcloud.server.progress` uses its table. A platform may add tables of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localcloud.files import transaction

_SCHEMA = """
CREATE TABLE IF NOT EXISTS progress (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, bucket TEXT NOT NULL, name TEXT NOT NULL, moment REAL NOT NULL,
    point TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS by_status ON progress (bucket, name, sequence);
"""


class State:
    """The file and its shared table. Only one thread may use it. Writes need `transaction`."""

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
        with transaction(self.connection):
            yield
