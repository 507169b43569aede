# SPDX-License-Identifier: Apache-2.0
"""The storages of a local cluster, which this machine can read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from components.openpai.client.jobs import Job
from components.platform.status import LONGEST_BYTES, parse_status
from launcher.walking import open_file

# Where tasks see storages, unless a job says otherwise.
_USUAL_MOUNTS = "file:///mnt/"


def storages_folder(home: Path) -> Path:
    """A folder of the local cloud, in which each folder is a storage."""
    return home / "storages"


@dataclass(frozen=True)
class StorageFolder:
    """A folder on a storage. `bucket`: the key under which a local cloud records the storage's progress."""

    bucket: str
    prefix: str


def storage_progress_key(storage: str) -> str:
    """A key beside those of buckets, whose progress is in the same table."""
    return f"file://{storage}"


def parse_storage_folder(folder: str | None) -> StorageFolder | None:
    """The address of a start's folder, on a storage at its usual place. None if it is elsewhere."""
    address = unquote(folder or "")
    storage, _, prefix = address.removeprefix(_USUAL_MOUNTS).partition("/")
    usual = address.startswith(_USUAL_MOUNTS) and storage and prefix
    return StorageFolder(storage_progress_key(storage), prefix) if usual else None


@dataclass(frozen=True)
class Storages:
    """`root`: the folder with the storages, by name."""

    root: Path

    def status(self, job: Job, folder: str | None, rank: int) -> Mapping[str, Any] | None:
        """The status file of a rank. None if it does not exist yet, or if the run's folder is on no storage."""
        try:
            place = self.place(job, folder)
            number = open_file(str(place[0]), f"{place[1]}/status/{rank}.json") if place is not None else None
        except (OSError, ValueError):  # an invalid address, or an impossible file name
            return None
        if number is None:
            return None
        with os.fdopen(number, "rb") as file:
            return parse_status(file.read(LONGEST_BYTES))

    def place(self, job: Job, folder: str | None) -> tuple[Path, str] | None:
        """The storage of a folder, and the path on it."""
        place = job.storage_place(folder)
        return (self.root / place[0], place[1]) if place else None
