# SPDX-License-Identifier: Apache-2.0
"""Removes old jobs, as a real cluster does, so that a cluster which runs for months does not grow without limit."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
from pathlib import Path

from localcloud.openpai.attempts import logs_folder
from localcloud.openpai.store import JobStore
from localcloud.openpai.tokens import Tokens

EVERY_SECONDS = 60.0
JOBS_KEPT = 10_000
# How many jobs are removed at a time, so that no client has to wait.
_BATCH = 200
_TABLES = ("job_attempts", "task_attempts", "tags")
log = logging.getLogger("localcloud")


async def keep_pruned(home: Path, store: JobStore, tokens: Tokens) -> None:
    """Prunes at intervals until it is cancelled."""
    remove_strange_logs(home, store)
    while True:
        try:
            tokens.forget_expired()
            attempts = prune(store)
            await asyncio.to_thread(_remove_logs, home, attempts)
        except (OSError, sqlite3.Error):
            log.exception("pruning")  # such as a full disk, which may have space again next time
        await asyncio.sleep(EVERY_SECONDS)


def prune(store: JobStore, kept: int = JOBS_KEPT) -> list[str]:
    """Removes the oldest ended jobs, if there are too many. Returns the attempts whose logs may be removed."""
    with store.transaction():
        oldest = "SELECT sequence FROM jobs ORDER BY sequence DESC LIMIT 1 OFFSET ?"
        rows = store.connection.execute(
            f"SELECT name FROM jobs WHERE completed IS NOT NULL AND sequence < ({oldest}) ORDER BY sequence LIMIT ?",
            (kept - 1, _BATCH),
        )
        names = [name for (name,) in rows]
        marks = ", ".join("?" * len(names))
        chosen = store.connection.execute(f"SELECT id FROM task_attempts WHERE job IN ({marks})", names)
        attempts = [attempt for (attempt,) in chosen]
        for table in _TABLES:
            store.connection.execute(f"DELETE FROM {table} WHERE job IN ({marks})", names)
        store.connection.execute(f"DELETE FROM jobs WHERE name IN ({marks})", names)
    return attempts


def remove_strange_logs(home: Path, store: JobStore) -> None:
    """Removes logs of unknown attempts: a kill of the cloud may have left them when it removed jobs."""
    folder = logs_folder(home)
    if folder.is_dir():
        known = {attempt for (attempt,) in store.connection.execute("SELECT id FROM task_attempts")}
        _remove_logs(home, [path.name for path in folder.iterdir() if path.name not in known])


def _remove_logs(home: Path, attempts: list[str]) -> None:
    for attempt in attempts:
        shutil.rmtree(logs_folder(home) / attempt, ignore_errors=True)
