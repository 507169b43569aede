# SPDX-License-Identifier: Apache-2.0
"""Folders that the nodes of a run see at paths of the job's choice: what lies in a store when the run starts.

Clouds' mounts follow the store and may be written to; these show one moment of it. Objects never change here, so each
file of a folder is another name of the object's own file, and no byte is copied.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from localcloud.hosts.assignment import Assignment

FOLDER = "mounts"
log = logging.getLogger("localcloud")


@dataclass(frozen=True)
class Mount:
    """A folder of the run's, and where its nodes see it."""

    source: Path
    target: str


async def prepare(assignment: Assignment) -> list[Mount]:
    """The folders of a run, filled."""
    made = []
    for number, mounted in enumerate(assignment.mounts):
        folder = assignment.folder / FOLDER / str(number)
        await asyncio.to_thread(_fill, folder, mounted.files)
        made.append(Mount(folder, mounted.target))
    return made


def _fill(folder: Path, files: Iterable[tuple[str, Path]]) -> None:
    folder.mkdir(parents=True)
    left_out = [name for name, file in files if not _add(folder, name, file)]
    for place, _, _ in os.walk(folder):
        os.chmod(place, 0o755)  # the run is another user, and what all of it lies in lets nobody else through
    if left_out:
        log.warning("%d objects have names that no file can have: not mounted, such as %r", len(left_out), left_out[0])


def _add(folder: Path, name: str, file: Path) -> bool:
    """Whether an object could be shown. A name may be no path, and one object may lie where another has a folder."""
    parts = name.rstrip("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        return not name
    path = folder.joinpath(*parts)
    try:
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            os.link(file, path)
            path.chmod(0o644)
    except (OSError, ValueError):
        return False
    return True
