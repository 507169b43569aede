# SPDX-License-Identifier: Apache-2.0
"""The buckets that a job mounts, with the objects in them when a run starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from localcloud.api import tenancy
from localcloud.api.services.object_storage import buckets, listing
from localcloud.api.store import StateStore, StoredResource
from localcloud.hosts.assignment import CannotStartError, MountedFiles

_DEFAULT_PATH = "/mnt"
MayMount = Callable[[StoredResource], bool]


def mounted_buckets(
    run: StoredResource, job: StoredResource, store: StateStore, objects: Path, may_mount: MayMount
) -> Iterator[MountedFiles]:
    overridden = run.body.get("jobStorageMountConfigurationOverrideDetailsList")
    for row in overridden or job.body.get("jobStorageMountConfigurationDetailsList") or []:
        bucket = _bucket(store, row, may_mount)
        prefix = row.get("prefix") or ""
        prefix = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        items = listing.select_objects(store, bucket, {"prefix": prefix})
        target = PurePosixPath("/", row.get("destinationPath") or _DEFAULT_PATH, row["destinationDirectoryName"])
        yield MountedFiles(str(target), [(item.name[len(prefix) :], objects / item.file) for item in items])


def _bucket(store: StateStore, row: dict[str, Any], may_mount: MayMount) -> StoredResource:
    if row["storageType"] != "OBJECT_STORAGE":
        raise CannotStartError("The local cloud mounts only buckets: it has no File Storage")
    name = row["bucket"]
    named = store.live(buckets.KIND, name=name) if row["namespace"] == tenancy.NAMESPACE else []
    if not named or not may_mount(named[0]):
        raise CannotStartError(f"The bucket {name} cannot be mounted: it does not exist, or the run may not read it")
    return named[0]
