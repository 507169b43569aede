# SPDX-License-Identifier: Apache-2.0
"""The storages of the local cluster: each folder below `storages` is one. All users may use all of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from components.openpai.client.storages import storages_folder
from components.openpai.protocol import javascript_text, named_storages
from localcloud.openpai.rest_errors import no_storage
from localcloud.openpai.tasks import TaskStorage

DEFAULT = "shared"
_PLUGINS = "com.microsoft.pai.runtimeplugin"


def storage_folder(home: Path, name: str) -> Path | None:
    """The folder of a storage; None if there is no such storage. It must not be a link. Only the path to the storages
    may contain links, because tasks cannot write there."""
    path = storages_folder(home).resolve() / name
    if os.path.basename(name) != name or name in ("", ".", ".."):
        return None
    return path if path.is_dir() and not path.is_symlink() else None


def storage_names(home: Path) -> list[str]:
    folder = storages_folder(home)
    names = os.listdir(folder) if folder.is_dir() else []
    return sorted(name for name in names if storage_folder(home, name))


def require_storages(home: Path, protocol: Mapping[str, Any]) -> None:
    for row in _named_storages(home, protocol):
        if storage_folder(home, javascript_text(row["name"])) is None:
            raise no_storage(javascript_text(row["name"]))


def task_storages(home: Path, protocol: Mapping[str, Any], user: str) -> tuple[TaskStorage, ...]:
    """The storages that the tasks of a job see, without storages that have been removed."""
    seen = []
    for row in _named_storages(home, protocol):
        name = javascript_text(row["name"])
        if folder := storage_folder(home, name):
            if row.get("share") is False:
                folder = folder / user
                # If a file has this name, the hosts refuse it later.
                with suppress(OSError):
                    folder.mkdir()
            seen.append(TaskStorage(name, row.get("mountPath") or f"/mnt/{name}", folder, row.get("readOnly") is True))
    return tuple(seen)


def _named_storages(home: Path, protocol: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The storages that a job names, as in models/v2/job/k8s.js. An empty list means the default ones."""
    extras = protocol.get("extras") or {}
    if extras.get("storages"):
        return named_storages(protocol)
    names = [] if extras.get("storages") == [] else _teamwise_storages(extras.get(_PLUGINS))
    if names == []:
        return [{"name": DEFAULT}] if storage_folder(home, DEFAULT) else []
    return [{"name": name} for name in names or () if name]


def _teamwise_storages(plugins: Any) -> list[Any] | None:
    """The storages in the older plugin teamwise_storage; None if the job does not have it."""
    names: list[Any] | None = None
    for row in plugins if isinstance(plugins, list) else ():
        if isinstance(row, Mapping) and row.get("plugin") == "teamwise_storage":
            given = row.get("parameters")
            asked = given.get("storageConfigNames") if isinstance(given, Mapping) else None
            names = asked if isinstance(asked, list) else []
    return names
