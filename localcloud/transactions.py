# SPDX-License-Identifier: Apache-2.0
"""Writing to SQLite, all or nothing, for every state that the local cloud keeps."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # on a full disk SQLite may have rolled back already
            connection.execute("ROLLBACK")
        raise
