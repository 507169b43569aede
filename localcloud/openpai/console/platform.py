# SPDX-License-Identifier: Apache-2.0
"""OpenPAI in the console, from the local cluster's tables, logs and storages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from localcloud.console.platform import MANY, RunContent, Section
from localcloud.openpai.cluster import OpenPaiCluster
from localcloud.openpai.console import sections
from localcloud.openpai.console.runs import OpenPaiRun, RunBook
from localcloud.openpai.console.sections import content_of
from localcloud.openpai.observing import remembered_under
from localcloud.openpai.rest import Parts
from localcloud.server import progress
from localcloud.server.cloud import ServedCloud


class OpenPaiPlaces:
    """`localcloud.console.platform.PlaceNames`."""

    names: Mapping[str, str] = MappingProxyType({})
    note = "The tasks of a cluster can reach each other without rules."

    def addresses_of(self, peer: str) -> tuple[str, ...]:
        return ()


class OpenPaiConsole:
    """`localcloud.console.platform.ConsolePlatform`."""

    places = OpenPaiPlaces()

    def __init__(self, cloud: ServedCloud, parts: Parts | None) -> None:
        self._cloud, self._parts = cloud, parts
        self._book = RunBook(parts) if parts else None

    async def runs(self) -> Sequence[OpenPaiRun]:
        return self._book.latest() if self._book else ()

    async def content(self, run: OpenPaiRun, most: int) -> RunContent:
        if self._parts is None:
            return RunContent()
        points = {}
        if run.place is not None:
            storage, folder = run.place
            points = progress.progress_of(self._cloud.store, remembered_under(storage), folder, most)
        return content_of(self._parts, run, points)

    async def sections(self) -> Sequence[Section]:
        return sections.sections(self._parts, MANY) if self._parts else sections.EMPTY

    def facts(self) -> Sequence[tuple[str, str]]:
        return [("OpenPAI", self._cloud.endpoint)]


def make(cloud: ServedCloud) -> OpenPaiConsole:
    cluster = next((api for api in cloud.apis if isinstance(api, OpenPaiCluster)), None)
    return OpenPaiConsole(cloud, cluster.parts if cluster else None)
