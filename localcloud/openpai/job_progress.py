# SPDX-License-Identifier: Apache-2.0
"""Records the progress of jobs. Launchers write status files to storages, which send no notifications. So this module
polls the files, and records the numbers of each version."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.openpai.client.jobs import Job, start_of_job
from components.openpai.client.storages import storage_progress_key, storages_folder
from launcher.walking import open_file
from localcloud.openpai.job_store import JobRow, JobStore
from localcloud.server import http, progress_record
from localcloud.server.cloud import StateFile

# Launchers report every five seconds.
EVERY_SECONDS = 2.0
# How many of the newest jobs are polled, and how many ranks of each.
_MOST_JOBS, _MOST_RANKS = 50, 256
Place = tuple[str, str]
log = logging.getLogger("localcloud")


def read_rank_status(home: Path, place: Place, rank: int) -> Mapping[str, Any]:
    """The status file of a rank; empty if there is none. Jobs write to the folder, so no links are followed."""
    storage, folder = place
    try:
        number = open_file(str(storages_folder(home) / storage), _status_file_name(folder, rank))
    except OSError:
        return {}
    with os.fdopen(number, "rb") as file:
        return progress_record.parse_status_object(file.read(progress_record.LONGEST_BYTES))


@dataclass
class ProgressObserver:
    """Polls running jobs, and each one once more after its end."""

    home: Path
    jobs: JobStore
    store: StateFile
    # Running jobs by name, parsed once because they never change. None: the job is not ours.
    _texts: dict[str, Job | None] = field(default_factory=dict)

    async def keep_observed(self) -> None:
        """Polls at intervals until it is cancelled."""
        while True:
            try:
                self.observe()
            except (OSError, sqlite3.Error):
                log.exception("progress of jobs")  # such as a full disk, which may have space again next time
            await asyncio.sleep(EVERY_SECONDS)

    def observe(self) -> None:
        living = list(self.jobs.jobs("WHERE completed IS NULL ORDER BY sequence DESC LIMIT ?", (_MOST_JOBS,)))
        ended = (self.jobs.job(name) for name in self._texts.keys() - {row.name for row in living})
        rows = [*living, *(row for row in ended if row is not None)]
        before, self._texts = self._texts, {}
        for row in living:
            self._texts[row.name] = before[row.name] if row.name in before else self._text(row)
        points = [point for row in rows for point in self._points(row, {**before, **self._texts}.get(row.name))]
        if points:
            with self.store.transaction():
                for storage, name, status in points:
                    progress_record.record_status(
                        self.store, storage_progress_key(storage), name, status, http.current_moment()
                    )

    def _text(self, row: JobRow) -> Job | None:
        return Job.read(row.user, row.job, self.jobs.text(row.name, "config"), [])

    def _points(self, row: JobRow, job: Job | None) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        if job is None or not job.folder:
            return
        place = job.storage_place(f"{job.folder}/{start_of_job(job.name, row.attempt)}")
        for node in job.nodes[:_MOST_RANKS] if place else ():
            rank = node.get("rank")
            if place and type(rank) is int and (status := read_rank_status(self.home, place, rank)):
                yield place[0], _status_file_name(place[1], rank), status


def _status_file_name(folder: str, rank: int) -> str:
    return f"{folder}/status/{rank}.json"
