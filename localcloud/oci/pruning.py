# SPDX-License-Identifier: Apache-2.0
"""Removes old rows and files, so that a cloud which runs for months does not grow without limit."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from localcloud.oci.dispatch import VALID_SECONDS
from localcloud.oci.operations import OciCloud
from localcloud.oci.store import StateStore
from localcloud.server import http

EVERY_SECONDS = 60.0
# How many deleted resources, work requests, log lines and points of progress are kept.
DELETED_KEPT = 10_000
WORK_REQUESTS_KEPT = 10_000
LINES_KEPT = 1_000_000
PROGRESS_KEPT = 200_000
METRICS_KEPT_SECONDS = 90 * 86400.0
SERVER_LOG_BYTES = 32 * 1024 * 1024
# How many rows are removed at a time, so that no client has to wait.
_BATCH = 2_000
_DELETED = "resources WHERE NOT live"
_WORK_REQUESTS = "resources WHERE kind = 'work-request'"

log = logging.getLogger("localcloud")


async def keep_pruned(cloud: OciCloud) -> None:
    """Prunes at intervals until it is cancelled."""
    while True:
        try:
            prune(cloud.store)
            trim_server_log(cloud.home / "server.log")
        except (OSError, sqlite3.Error):
            log.exception("pruning")  # such as a full disk, which may have space again next time
        await asyncio.sleep(EVERY_SECONDS)


def prune(store: StateStore) -> int:
    """Removes what exceeds the bounds, one batch of each table. Returns how many rows it removed."""
    gone = 0
    with store.transaction():
        for rows, kept in ((_DELETED, DELETED_KEPT), (_WORK_REQUESTS, WORK_REQUESTS_KEPT)):
            oldest = f"SELECT sequence FROM {rows} ORDER BY sequence DESC LIMIT 1 OFFSET {kept - 1}"
            gone += _remove(store, rows, oldest)
        for table, most in (("log_lines", LINES_KEPT), ("progress", PROGRESS_KEPT)):
            gone += _remove(store, f"{table} WHERE 1", f"SELECT max(sequence) - {most - 1} FROM {table}")
        for rows, seconds in (("metrics WHERE time", METRICS_KEPT_SECONDS), ("retries WHERE created", VALID_SECONDS)):
            gone += store.connection.execute(f"DELETE FROM {rows} < ?", (http.now() - seconds,)).rowcount
    return gone


def _remove(store: StateStore, rows: str, oldest_kept: str) -> int:
    chosen = f"SELECT sequence FROM {rows} AND sequence < ({oldest_kept}) ORDER BY sequence LIMIT {_BATCH}"
    table = rows.partition(" ")[0]
    return store.connection.execute(f"DELETE FROM {table} WHERE sequence IN ({chosen})").rowcount


def trim_server_log(path: Path, most: int = SERVER_LOG_BYTES) -> None:
    """Copies a log that is too long, and truncates it. The server appends, so it continues at the beginning."""
    try:
        if path.stat().st_size <= most:
            return
        shutil.copyfile(path, path.with_suffix(".log.old"))
        os.truncate(path, 0)
    except FileNotFoundError:
        return


def remove_folders(folders: Path, in_use: Iterable[str]) -> None:
    """Removes the folders of runs that no longer exist."""
    kept = set(in_use)
    for folder in folders.iterdir() if folders.is_dir() else ():
        if folder.is_dir() and folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
