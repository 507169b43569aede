# SPDX-License-Identifier: Apache-2.0
"""OCI in the console, from the tables of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from localcloud.console.platform import RunContent, Section
from localcloud.oci import tenancy
from localcloud.oci.console.runs import OciRun, RunBook
from localcloud.oci.console.sections import access, buckets, content_of, jobs, network, unused_defaults
from localcloud.oci.operations import OciCloud
from localcloud.oci.services.network import gateways


class OciPlaces:
    """`localcloud.console.platform.PlaceNames`."""

    names: Mapping[str, str] = MappingProxyType(
        {gateways.OBJECT_STORAGE_ADDRESS: "Object Storage", gateways.SERVICES_ADDRESS: "OCI services"}
    )
    note = ""

    def addresses_of(self, peer: str) -> tuple[str, ...]:
        return gateways.addresses_of(peer)


class OciConsole:
    """`localcloud.console.platform.ConsolePlatform`."""

    places = OciPlaces()

    def __init__(self, cloud: OciCloud) -> None:
        self._cloud = cloud
        self._book = RunBook(cloud.store)

    async def runs(self) -> Sequence[OciRun]:
        return await self._book.latest()

    async def content(self, run: OciRun, most: int) -> RunContent:
        return content_of(self._cloud, run, most)

    async def sections(self) -> Sequence[Section]:
        store = self._cloud.store
        return (
            Section("Networks", list(network(store)), "No network."),
            Section("Who may do what", list(access(store)), "No policies."),
            Section("Buckets", list(buckets(store)), "No buckets."),
            Section("Jobs", list(jobs(store)), "No jobs."),
            Section("Defaults that no subnet uses", list(unused_defaults(store)), last=True),
        )

    def facts(self) -> Sequence[tuple[str, str]]:
        return list(tenancy.facts().items())


def make(cloud: OciCloud) -> OciConsole:
    return OciConsole(cloud)
