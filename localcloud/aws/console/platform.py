# SPDX-License-Identifier: Apache-2.0
"""AWS in the console, from the state of the local AWS. If AWS was never used here, the console does not start it, and
shows empty sections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from localcloud.aws import account
from localcloud.aws.cloud import AwsCloud
from localcloud.aws.console import sections
from localcloud.aws.console.queued_runs import AwsRun, RunBook
from localcloud.aws.console.sections import queued_run_content
from localcloud.aws.hosts import machine_network
from localcloud.console.platform import MANY, PlaceNames, RunContent, Section
from localcloud.server import progress_record
from localcloud.server.cloud import ServedCloud

_CACHED_SECONDS = 1.0


class AwsConsole:
    """`localcloud.console.platform.ConsolePlatform`."""

    places = PlaceNames(
        dict(zip(machine_network.ADDRESSES, ("S3", "AWS services", "metadata"), strict=True)),
        "Machines serve one run after the other: these are the counts of all runs since the machines were started.",
    )

    def __init__(self, cloud: ServedCloud, aws: AwsCloud | None) -> None:
        self._cloud, self._aws = cloud, aws
        self._book = RunBook()
        self._latest: Sequence[AwsRun] = ()
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def runs(self) -> Sequence[AwsRun]:
        """The runs. They are cached for a second, because reading them is slow and the state changes often."""
        async with self._reading:
            if self._aws is not None and time.monotonic() > self._read_at + _CACHED_SECONDS:
                self._latest = await self._aws.read_state(self._book.read) or ()
                self._read_at = time.monotonic()
            return self._latest

    async def content(self, run: AwsRun, most: int) -> RunContent:
        if self._aws is None:
            return RunContent()
        points = {}
        if run.place is not None:
            remembered = progress_record.recorded_progress(
                self._cloud.store, progress_record.s3_bucket_key(run.place.bucket), run.place.prefix, most
            )
            # Leaves out points of an earlier start with this number, from before the bucket was deleted and created
            # again.
            points = {rank: [one for one in own if one.moment >= run.created] for rank, own in remembered.items()}
        return await self._aws.read_state(lambda: queued_run_content(run, points)) or RunContent()

    async def sections(self) -> Sequence[Section]:
        made = await self._aws.read_state(lambda: sections.aws_sections(MANY)) if self._aws else None
        return made or sections.EMPTY

    def facts(self) -> Sequence[tuple[str, str]]:
        return [("AWS account", account.ACCOUNT), ("AWS region", account.REGION)]


def make(cloud: ServedCloud) -> AwsConsole:
    return AwsConsole(cloud, next((api for api in cloud.apis if isinstance(api, AwsCloud)), None))
