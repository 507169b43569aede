# SPDX-License-Identifier: Apache-2.0
"""What of a stack file speaks of a cluster, for the local one: its address and users, and stand-ins for storages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.openpai.local.sessions import DEPLOYER
from components.openpai.local.storages import stand_in_storage
from components.platform.local import LocalFile
from components.platform.local_cloud import LocalCloud
from localcloud.openpai.accounts import VIRTUAL_CLUSTERS
from localcloud.openpai.tasks import ABSENT_PLUGINS

CLUSTER, STORAGE, JOBS = "trainyard:cluster", "trainyard:storage", "trainyard:jobs"
_DEFAULT = "default"


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
