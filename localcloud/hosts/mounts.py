# SPDX-License-Identifier: Apache-2.0
"""Folders that a run's nodes see at paths that the job chooses: those that runs share, and the objects of a store.

Mounts of a cloud follow the store and may be written to. These show the store as it was when the run started. Objects
never change here, so each file is a hard link to the object's own file, and nothing is copied.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from localcloud.hosts import users
from localcloud.hosts.assignment import Assignment, CannotStartError

FOLDER = "mounts"
log = logging.getLogger("localcloud")


@dataclass(frozen=True)
class Mount:
    """A folder, and the path where the run's nodes see it."""

    source: Path
    target: str
    writable: bool = False


async def prepare(assignment: Assignment) -> list[Mount]:
    """Makes and fills the folders of a run, and opens those that it shares to its user."""
    made = []
    for shared in assignment.shared:
        try:
            await asyncio.to_thread(users.hand_over, shared.folder, users.run_user(assignment.user or assignment.id))
        except (NotADirectoryError, FileNotFoundError):
            reason = f"{shared.folder.name!a} is no folder, so it cannot be shown at {shared.target!a}"
            raise CannotStartError(reason) from None
        made.append(Mount(shared.folder, shared.target, not shared.read_only))
    for number, mounted in enumerate(assignment.mounts):
        folder = assignment.folder / FOLDER / str(number)
        await asyncio.to_thread(_fill, folder, mounted.files)
        made.append(Mount(folder, mounted.target))
    return made


def _fill(folder: Path, files: Iterable[tuple[str, Path]]) -> None:
    folder.mkdir(parents=True)
    left_out = [name for name, file in files if not _add(folder, name, file)]
    for place, _, _ in os.walk(folder):
        os.chmod(place, 0o755)  # for the run's user; the folder above lets nobody else through
    if left_out:
        log.warning("%d objects have names that no file can have: not mounted, such as %r", len(left_out), left_out[0])


def _add(folder: Path, name: str, file: Path) -> bool:
    """Adds one object, and returns whether that worked. A name may not be a valid path, or collide with a folder."""
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
