# SPDX-License-Identifier: Apache-2.0
"""The local OpenPAI as a part of the running server."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from localcloud.openpai.cluster import OpenPaiCluster
from localcloud.openpai.hosts.task_dispatch import ClusterTasks
from localcloud.openpai.job_progress import ProgressObserver
from localcloud.server.cloud import ServedCloud
from localcloud.server_part import MakeFabric, ServerPart


class OpenPaiServerPart(ServerPart):
    def __init__(self, cloud: ServedCloud) -> None:
        self.facts = {"openpaiUri": cloud.endpoint}
        self.api = self._cluster = OpenPaiCluster(cloud.home, cloud.endpoint, cloud.faults)
        self._cloud = cloud

    async def start_hosts(self, make_fabric: MakeFabric) -> None:
        folder, controller = self._cloud.home / "tasks", self._cluster.controller
        self._tasks = ClusterTasks(folder, make_fabric(()), controller, self._cloud.faults.disk_bytes)
        self._cloud.other_hosts.append(self._tasks)
        await self._cluster.recover(self._tasks)

    def upkeep(self) -> Sequence[Coroutine[Any, Any, None]]:
        observer = ProgressObserver(self._cloud.home, self._cluster.parts.store, self._cloud.store)
        return self._cluster.keep_pruned(), observer.keep_observed()

    async def stop_hosts(self) -> None:
        await self._tasks.close()

    async def close(self) -> None:
        self._cluster.close()


SERVER_PART = OpenPaiServerPart
