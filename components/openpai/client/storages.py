# SPDX-License-Identifier: Apache-2.0
"""What launchers say on the storages of the local cluster, which are folders of this machine.

A real cluster's storages are not open to us. What tasks leave there is a stranger's: no link is followed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.openpai.client.jobs import Job
from components.platform import launcher_status
from launcher.walking import open_file


def storages_folder(home: Path) -> Path:
    """In the folder of a local cloud: each folder there is a storage."""
    return home / "storages"


@dataclass(frozen=True)
class Storages:
    """`root`: the folder that has the storages, by their names."""

    root: Path

    def status(self, job: Job, folder: str | None, rank: int) -> Mapping[str, Any] | None:
        """The status file of a rank; None while there is none, or where the run's folder is on no storage."""
        try:
            place = self.place(job, folder)
            number = open_file(str(place[0]), f"{place[1]}/status/{rank}.json") if place is not None else None
        except (OSError, ValueError):  # an address that is none, or a name that no file can have
            return None
        if number is None:
            return None
        with os.fdopen(number, "rb") as file:
            return launcher_status.parse_status(file.read(launcher_status.LONGEST_BYTES))

    def place(self, job: Job, folder: str | None) -> tuple[Path, str] | None:
        """The storage that a folder is on, and its path there."""
        place = job.storage_place(folder)
        return (self.root / place[0], place[1]) if place else None
