# SPDX-License-Identifier: Apache-2.0
"""The storages of the local cluster: each folder below `storages` is one, and all users may use all of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from localcloud.openpai.errors import no_storage
from localcloud.openpai.tasks import TaskStorage

DEFAULT = "shared"


def storages_folder(home: Path) -> Path:
    return home / "storages"


def storage_folder(home: Path, name: str) -> Path | None:
    """A storage's folder. None if there is none: what only leads elsewhere is none."""
    path = storages_folder(home) / name
    if os.path.basename(name) != name or name in ("", ".", ".."):
        return None
    return path if path.is_dir() and not path.is_symlink() else None


def storage_names(home: Path) -> list[str]:
    folder = storages_folder(home)
    names = os.listdir(folder) if folder.is_dir() else []
    return sorted(name for name in names if storage_folder(home, name))


def require_storages(home: Path, protocol: Mapping[str, Any]) -> None:
    for row in _rows(home, protocol):
        if storage_folder(home, row["name"]) is None:
            raise no_storage(row["name"])


def task_storages(home: Path, protocol: Mapping[str, Any], user: str) -> tuple[TaskStorage, ...]:
    """What the tasks of a job see of the storages. One that is gone by now is not among them."""
    shown = []
    for row in _rows(home, protocol):
        if folder := storage_folder(home, row["name"]):
            if row.get("share") is False:
                folder = folder / user
                # What else tasks put there under this name, the hosts refuse.
                with suppress(OSError):
                    folder.mkdir()
            mount = row.get("mountPath") or f"/mnt/{row['name']}"
            shown.append(TaskStorage(row["name"], mount, folder, row.get("readOnly") is True))
    return tuple(shown)


def _rows(home: Path, protocol: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The storages that a job asks for. An empty list asks for the default ones."""
    rows = (protocol.get("extras") or {}).get("storages")
    if rows == []:
        return [{"name": DEFAULT}] if storage_folder(home, DEFAULT) else []
    return [row for row in rows or () if row.get("name")]
