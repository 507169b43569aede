# SPDX-License-Identifier: Apache-2.0
"""Buckets that a job mounts: what lies in them when a run starts, as folders that its nodes can read.

OCI's mounts follow the bucket and may be written to; these show one moment of it. Objects never change here, so each
file of a folder is another name of the object's own file, and no byte is copied.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from localcloud.api import tenancy
from localcloud.api.services.object_storage import buckets, listing
from localcloud.api.store import Resource, Store
from localcloud.hosts.workplace import Assignment, CannotStartError

FOLDER = "mounts"
_DEFAULT_PATH = "/mnt"
log = logging.getLogger("localcloud")


@dataclass(frozen=True)
class Mount:
    """A folder of the run's, and where its nodes see it."""

    source: Path
    target: str


async def prepare(assignment: Assignment, store: Store, objects: Path) -> list[Mount]:
    """The folders of a run, filled."""
    mounted = []
    for number, row in enumerate(_rows(assignment)):
        bucket = _bucket(assignment, store, row)
        prefix = row.get("prefix") or ""
        prefix = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        folder = assignment.folder / FOLDER / str(number)
        found = [(item.name[len(prefix) :], item.file) for item in listing.matching(store, bucket, {"prefix": prefix})]
        await asyncio.to_thread(_fill, folder, objects, found)
        target = PurePosixPath("/", row.get("destinationPath") or _DEFAULT_PATH, row["destinationDirectoryName"])
        mounted.append(Mount(folder, str(target)))
    return mounted


def _rows(assignment: Assignment) -> list[dict[str, Any]]:
    overridden = assignment.run.body.get("jobStorageMountConfigurationOverrideDetailsList")
    return overridden or assignment.job.body.get("jobStorageMountConfigurationDetailsList") or []


def _bucket(assignment: Assignment, store: Store, row: dict[str, Any]) -> Resource:
    if row["storageType"] != "OBJECT_STORAGE":
        raise CannotStartError("The local cloud mounts buckets only: it has no File Storage")
    name = row["bucket"]
    found = store.live(buckets.KIND, name=name) if row["namespace"] == tenancy.NAMESPACE else []
    if not found or not assignment.may_mount(found[0]):
        raise CannotStartError(f"The bucket {name} cannot be mounted: it does not exist, or the run may not read it")
    return found[0]


def _fill(folder: Path, objects: Path, files: Iterable[tuple[str, str]]) -> None:
    folder.mkdir(parents=True)
    left_out = [name for name, file in files if not _add(folder, name, objects / file)]
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
