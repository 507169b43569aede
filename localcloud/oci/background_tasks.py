# SPDX-License-Identifier: Apache-2.0
"""Two tasks of the running server: it removes old rows and files, and measures job runs.

Without the first one, a cloud that runs for months would grow without limit.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localcloud import files
from localcloud.oci.call_dispatch import RETRY_TOKEN_SECONDS
from localcloud.oci.operations import OciCloud
from localcloud.oci.services.metrics import MetricStream, dimensions_text, write_points
from localcloud.oci.tenancy_store import StateStore, StoredResource
from localcloud.server import http

PRUNED_EVERY_SECONDS = 60.0
# How many deleted resources, work requests and points of progress are kept. Log lines: log_lines.py.
DELETED_KEPT = 10_000
WORK_REQUESTS_KEPT = 10_000
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
            while prune_rows(cloud.store) >= _BATCH:
                await asyncio.sleep(0)
            trim_server_log(cloud.home / "server.log")
        except (OSError, sqlite3.Error):
            log.exception("pruning")  # such as a full disk, which may have space again next time
        await asyncio.sleep(PRUNED_EVERY_SECONDS)


def prune_rows(store: StateStore) -> int:
    """Removes the rows beyond the bounds, one batch of each table. Returns how many it removed."""
    gone = 0
    with store.transaction():
        for rows, owner, most in (
            (_DELETED, "compartment", DELETED_KEPT),
            (_WORK_REQUESTS, "compartment", WORK_REQUESTS_KEPT),
            ("progress WHERE 1", "bucket", PROGRESS_KEPT),
        ):
            gone += _remove_oldest_of_largest(store, rows, owner, most)
        for rows, seconds in (
            ("metrics WHERE time", METRICS_KEPT_SECONDS),
            ("retries WHERE created", RETRY_TOKEN_SECONDS),
        ):
            gone += store.connection.execute(f"DELETE FROM {rows} < ?", (http.current_moment() - seconds,)).rowcount
    return gone


def _remove_oldest_of_largest(store: StateStore, rows: str, owner: str, most: int) -> int:
    """Removes the oldest rows of whoever has the most, so that nobody's rows take the place of another's."""
    counted = f"SELECT {owner}, count(*) FROM {rows} GROUP BY {owner} ORDER BY 2"
    owners = store.connection.execute(counted).fetchall()
    room, share = most, most
    for number, (_, count) in enumerate(owners):
        share = room // (len(owners) - number)
        if count > share:
            break
        room -= count
    gone, table = 0, rows.partition(" ")[0]
    for name, count in owners:
        oldest = f"SELECT sequence FROM {rows} AND {owner} = ? ORDER BY sequence LIMIT ?"
        values = (name, min(max(count - share, 0), _BATCH - gone))
        gone += store.connection.execute(f"DELETE FROM {table} WHERE sequence IN ({oldest})", values).rowcount
    return gone


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
    names = set(in_use)
    for folder in folders.iterdir() if folders.is_dir() else ():
        if folder.is_dir() and folder.name not in names:
            shutil.rmtree(folder, ignore_errors=True)


MEASURED_EVERY_SECONDS = 5.0
NAMESPACE = "oci_datascience_jobrun"
_UNITS = {"CpuUtilization": "percent", "MemoryUtilization": "percent"}
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


async def keep_measured(cloud: OciCloud) -> None:
    """Measures at intervals until it is cancelled."""
    meter = RunMeter(cloud.store, cloud.home / "runs")
    while True:
        try:
            meter.measure()
        except (OSError, ValueError, sqlite3.Error):
            log.exception("measuring")  # such as a full disk, which may have space again next time
        await asyncio.sleep(MEASURED_EVERY_SECONDS)


@dataclass(frozen=True)
class ResourceUse:
    """A measurement of a run's processes: processor seconds so far, and bytes of memory."""

    at: float
    seconds: float
    memory: int


@dataclass
class RunMeter:
    """Measures runs. Processor use is the difference between two measurements."""

    store: StateStore
    folders: Path
    _before: dict[str, ResourceUse] = field(default_factory=dict)

    def measure(self) -> None:
        now: dict[str, ResourceUse] = {}
        for run in self.store.select("kind = 'job-run' AND live AND state IN ('IN_PROGRESS', 'CANCELING')", ()):
            # Each node has a supervisor. All processes of the node are its descendants.
            notes = [json.loads(path.read_text() or "{}") for path in (self.folders / run.id).glob("node-*.pid")]
            supervisors = [
                note["pid"] for note in notes if note and files.is_same_process(note["pid"], note["started"])
            ]
            if not supervisors:
                continue
            use = now[run.id] = _measure_use(supervisors)
            if before := self._before.get(run.id):
                passed = max(use.at - before.at, 0.001) * (os.cpu_count() or 1)
                used = max(0.0, use.seconds - before.seconds) / passed
                memory = use.memory / (os.sysconf("SC_PHYS_PAGES") * _PAGE)
                # In percent of this machine.
                self._write(run, {"CpuUtilization": min(100.0, 100 * used), "MemoryUtilization": 100 * memory})
        self._before = now

    def _write(self, run: StoredResource, values: Mapping[str, float]) -> None:
        moment, dimensions = http.current_moment(), dimensions_text({"resourceId": run.id})
        with self.store.transaction():
            for name, value in values.items():
                stream = MetricStream(run.compartment, NAMESPACE, "", name, dimensions)
                write_points(self.store, stream, [(moment, value, 1)], {"unit": _UNITS[name]})


def _measure_use(supervisors: list[int]) -> ResourceUse:
    seconds, memory, waiting = 0.0, 0, list(supervisors)
    at = time.monotonic()
    while waiting:
        pid = waiting.pop()
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            children = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        except OSError:  # it ended meanwhile, and its parent's count includes it
            continue
        # The process's own seconds, and those of the children that it has reaped.
        seconds += sum(map(int, fields[11:15])) / _TICKS
        memory += int(fields[21]) * _PAGE
        waiting += (int(child) for text in children for child in text.split())
    return ResourceUse(at, seconds, memory)
