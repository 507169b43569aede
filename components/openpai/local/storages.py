# SPDX-License-Identifier: Apache-2.0
"""Storages of the local cluster: folders, and those that stand in for the ones that stack files name."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from components.openpai.client.storages import storages_folder
from components.platform.local_cloud import LocalCloud
from schemas.names import plural

RECORD = "stand-ins-openpai.json"
# Enough to say how much it is; who keeps more knows that it is a lot.
_MOST_COUNTED = 1000


def storage_folder(cloud: LocalCloud, name: str) -> Path:
    return storages_folder(cloud.home) / name


def stand_in_storage(cloud: LocalCloud, name: str) -> bool:
    """Makes the storage if it is not there. Whether one stands in, made now or at some time before."""
    made = _recorded(cloud)
    if name not in made and not storage_folder(cloud, name).is_dir():
        _record(cloud, [*made, name])
    storage_folder(cloud, name).mkdir(parents=True, exist_ok=True)
    return name in _recorded(cloud)


def remove_stand_ins(cloud: LocalCloud, with_data: bool) -> None:
    """Removes the storages that stand in: those with files only `with_data`."""
    kept = []
    for name in _recorded(cloud):
        if not with_data and describe_contents(storage_folder(cloud, name)):
            kept.append(name)
        else:
            shutil.rmtree(storage_folder(cloud, name), ignore_errors=True)
    if kept:
        _record(cloud, kept)
    else:
        (cloud.home / RECORD).unlink(missing_ok=True)


def list_storages(cloud: LocalCloud) -> Iterator[str]:
    folder = storages_folder(cloud.home)
    for storage in sorted(folder.iterdir()) if folder.is_dir() else ():
        inside = describe_contents(storage)
        if storage.is_dir() and inside:
            yield f"storage  {storage.name} with its {inside}"


def describe_contents(folder: Path) -> str:
    """`12 files`; empty if there are none. Links are not followed: tasks may have made them."""
    count = 0
    for _, _, files in os.walk(folder):
        count += len(files)
        if count >= _MOST_COUNTED:
            return f"more than {plural(_MOST_COUNTED, 'file')}"
    return plural(count, "file") if count else ""


def _recorded(cloud: LocalCloud) -> list[str]:
    try:
        names: list[str] = json.loads((cloud.home / RECORD).read_text("utf-8"))
        return names
    except FileNotFoundError:
        return []


def _record(cloud: LocalCloud, names: list[str]) -> None:
    draft = cloud.home / f"{RECORD}.{os.getpid()}"
    draft.write_text(json.dumps(names), "utf-8")
    draft.replace(cloud.home / RECORD)
