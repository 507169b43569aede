# SPDX-License-Identifier: Apache-2.0
"""A stack file on the local OpenPAI: what stands in for the storages that it names, and who calls the cluster."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from components.openpai.client.runs import OpenPaiRunPlatform
from components.openpai.client.session import Session
from components.openpai.client.status import storages_folder
from components.platform.local import LocalCloud, LocalFile
from localcloud.openpai.accounts import VIRTUAL_CLUSTERS
from localcloud.openpai.tasks import ABSENT_PLUGINS
from schemas.names import plural

RECORD = "stand-ins-openpai.json"
# Enough to say how much it is; who keeps more knows that it is a lot.
_MOST_COUNTED = 1000
DEPLOYER, USER = "deployer", "user"
CLUSTER, STORAGE, JOBS = "trainyard:cluster", "trainyard:storage", "trainyard:jobs"
_DEFAULT = "default"


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


def session_of(cloud: LocalCloud, user: str = DEPLOYER) -> Session:
    """By the variables that lead every client there."""
    return Session.of({}, cloud.env_for(user))


def runs_of(cloud: LocalCloud, user: str = DEPLOYER) -> OpenPaiRunPlatform:
    return OpenPaiRunPlatform(session_of(cloud, user))


def stand_in(made: LocalFile, cloud: LocalCloud) -> None:
    """Makes what stands in for others, and changes the file so that it names that."""
    # A cluster has no policies that somebody would have to make first.
    made.has_access = True
    _cluster(made, made.config.get(CLUSTER) or {}, cloud)
    _storage(made, made.config.get(STORAGE) or {}, cloud)
    _plugins(made)


def _cluster(made: LocalFile, written: Mapping[str, Any], cloud: LocalCloud) -> None:
    """Who calls the local cluster is told by the environment, so no token is written down."""
    local = {"uri": cloud.endpoint, "user": DEPLOYER}
    if dict(written) != local:
        made.remarks.append(
            f"cluster {written.get('uri')}: the local cluster stands in for it, and its user {DEPLOYER} for "
            f"{written.get('user')}"
        )
    named = str(written.get("virtualCluster") or _DEFAULT)
    if named in {one.name for one in VIRTUAL_CLUSTERS}:
        local |= {"virtualCluster": named} if named != _DEFAULT else {}
    else:
        made.remarks.append(f"virtual cluster {named}: that of the name {_DEFAULT} stands in")
    made.config[CLUSTER] = local


def _storage(made: LocalFile, written: Mapping[str, Any], cloud: LocalCloud) -> None:
    name = written.get("name")
    if name and stand_in_storage(cloud, str(name)):
        made.remarks.append(f"storage {name}: an empty folder of this machine stands in")


def _plugins(made: LocalFile) -> None:
    """A task's own log says it too, where nobody looks while all is well."""
    jobs = made.config.get(JOBS) or {}
    named = {(name, row["plugin"]): None for name, job in jobs.items() for row in job.get("plugins") or ()}
    for name, plugin in named:
        if plugin in ABSENT_PLUGINS:
            made.remarks.append(f"job {name}: the local cluster has no plugin {plugin}: it is left out")
