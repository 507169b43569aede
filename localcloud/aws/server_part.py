# SPDX-License-Identifier: Apache-2.0
"""The local AWS as a part of the running server."""

from __future__ import annotations

from functools import partial

from localcloud.aws import account
from localcloud.aws.cloud import AwsCloud
from localcloud.aws.hosts.machine_dispatch import Instances
from localcloud.aws.hosts.machine_network import ADDRESSES
from localcloud.server import progress_record
from localcloud.server.cloud import ServedCloud
from localcloud.server_part import MakeFabric, ServerPart


class AwsServerPart(ServerPart):
    def __init__(self, cloud: ServedCloud) -> None:
        self.facts = account.account_facts()
        self.api = self._aws = AwsCloud(cloud.home, cloud.endpoint, cloud.faults)
        self._aws.after_put = partial(progress_record.record_put, cloud.store)
        self._cloud = cloud
        cloud.records["aws"] = self._aws.record

    async def start_hosts(self, make_fabric: MakeFabric) -> None:
        self._instances = Instances(self._cloud.home / "machines", make_fabric(ADDRESSES), self._aws)
        self._cloud.other_hosts.append(self._instances)
        self._aws.hosts = self._instances
        self._aws.recover()

    async def stop_hosts(self) -> None:
        await self._instances.stop()

    async def close(self) -> None:
        await self._aws.close()


SERVER_PART = AwsServerPart
