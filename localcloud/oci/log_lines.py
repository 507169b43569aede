# SPDX-License-Identifier: Apache-2.0
"""Stores the lines of logs within bounds, so that nobody's lines take the place of another's.

Each run, and each person who writes to a log, is an owner. Whoever writes too much to a log loses their own oldest
lines there. If all logs together are too large, the owner with the most in a log loses their oldest ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from localcloud.oci.tenancy_store import StateStore
from localcloud.server import http

# What a line takes beside its text: the other columns of its row, and three indexes. Measured: 420 to 500 bytes.
LINE_BYTES = 500
OWNER_BYTES_KEPT = 128 << 20
BYTES_KEPT = 1 << 30
# When a bound is reached, so much of it is freed at once, so that the next lines find room.
_FREED = 1 / 16
_COST = f"{LINE_BYTES} + length(CAST(data AS BLOB))"


def write_lines(
    store: StateStore, log: str, owner: str, source: str, subject: str, type_: str,
    lines: Iterable[tuple[float, str, str]],
) -> None:  # fmt: skip
    """Appends (time, id, text) to a log. `owner`: the OCID of whoever writes, or of the run whose lines they are."""
    moment = http.current_moment()
    rows = [(log, owner, time, moment, identifier, source, subject, type_, text) for time, identifier, text in lines]
    store.connection.executemany(
        "INSERT INTO log_lines (log, owner, time, ingested, id, source, subject, type, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    _add_usage(store, log, owner, sum(LINE_BYTES + len(row[-1].encode(errors="replace")) for row in rows))
    used = store.connection.execute("SELECT bytes FROM log_usage WHERE log = ? AND owner = ?", (log, owner)).fetchone()
    if used and used[0] > OWNER_BYTES_KEPT:
        _remove_oldest(store, log, owner, used[0] - OWNER_BYTES_KEPT * (1 - _FREED))
    total = store.connection.execute("SELECT sum(bytes) FROM log_usage").fetchone()[0] or 0
    if total > BYTES_KEPT:
        _remove_from_largest(store, total - BYTES_KEPT * (1 - _FREED))


def forget_lines(store: StateStore, log: str) -> None:
    """Removes all lines of a log."""
    for table in ("log_lines", "log_usage"):
        store.connection.execute(f"DELETE FROM {table} WHERE log = ?", (log,))


def count_usage(store: StateStore) -> None:
    """Counts the lines of a file that has no counts yet, because an earlier version wrote it."""
    if store.connection.execute("SELECT 1 FROM log_usage LIMIT 1").fetchone() is None:
        counted = f"SELECT log, owner, sum({_COST}) FROM log_lines GROUP BY log, owner"
        store.connection.execute(f"INSERT INTO log_usage (log, owner, bytes) {counted}")


def _add_usage(store: StateStore, log: str, owner: str, size: float) -> None:
    store.connection.execute(
        "INSERT INTO log_usage (log, owner, bytes) VALUES (?, ?, ?)"
        " ON CONFLICT (log, owner) DO UPDATE SET bytes = bytes + excluded.bytes",
        (log, owner, size),
    )


def _remove_from_largest(store: StateStore, size: float) -> None:
    largest = "SELECT log, owner, bytes FROM log_usage ORDER BY bytes DESC LIMIT 2"
    while size > 0 and (rows := store.connection.execute(largest).fetchall()):
        log, owner, used = rows[0]
        # Down to the next one at most, but by a step that is worth its search.
        step = max(used - (rows[1][2] if len(rows) > 1 else 0), BYTES_KEPT * _FREED / 16)
        removed = _remove_oldest(store, log, owner, min(size, step))
        if not removed:
            store.connection.execute("DELETE FROM log_usage WHERE log = ? AND owner = ?", (log, owner))
        size -= removed or used


def _remove_oldest(store: StateStore, log: str, owner: str, size: float) -> float:
    """Removes an owner's oldest lines of at least this size. Returns the size of what was removed."""
    removed, last = 0.0, None
    oldest = f"SELECT sequence, {_COST} FROM log_lines WHERE log = ? AND owner = ? ORDER BY sequence"
    for sequence, cost in store.connection.execute(oldest, (log, owner)):
        removed, last = removed + cost, sequence
        if removed >= size:
            break
    if last is not None:
        where = "log = ? AND owner = ? AND sequence <= ?"
        store.connection.execute(f"DELETE FROM log_lines WHERE {where}", (log, owner, last))
        _add_usage(store, log, owner, -removed)
    return removed
