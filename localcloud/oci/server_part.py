# SPDX-License-Identifier: Apache-2.0
"""The local OCI as a part of the running server. Its state file is the one that all parts share."""

from __future__ import annotations

import sqlite3
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from localcloud.hosts.run_hosts import Hosts
from localcloud.oci import background_tasks, tenancy
from localcloud.oci.access_decisions import AccessControl
from localcloud.oci.api import TAIL, OciApi
from localcloud.oci.authentication import Caller
from localcloud.oci.job_runs.run_dispatch import JobRuns
from localcloud.oci.log_lines import count_usage
from localcloud.oci.operations import OciCloud
from localcloud.oci.services import identity, service_operations, users
from localcloud.oci.services.network.gateways import OBJECT_STORAGE_ADDRESS, SERVICES_ADDRESS
from localcloud.oci.services.object_storage.listing import files_in_use
from localcloud.oci.tenancy_store import FaultTable, StateStore
from localcloud.server.api_errors import explain_disk_error
from localcloud.server.cloud import ServedCloud
from localcloud.server.faults import Faults
from localcloud.server.routing import Router
from localcloud.server_part import MainServerPart, MakeFabric, UnusableError


class OciServerPart(MainServerPart):
    def __init__(self, cloud: ServedCloud) -> None:
        if not isinstance(cloud, OciCloud):
            raise TypeError("the local OCI was given the state of another platform")
        self.facts = tenancy.tenancy_facts()
        self.api = OciApi(cloud, Router(service_operations(), TAIL))
        self._cloud = cloud

    @staticmethod
    def open_cloud(home: Path) -> OciCloud:
        incoming = home / "objects" / "incoming"
        incoming.mkdir(parents=True, exist_ok=True)
        state = home / "state.sqlite3"
        try:
            store = StateStore(state)
        except sqlite3.DatabaseError as error:
            if explain_disk_error(error, home):
                raise
            raise UnusableError(
                f"{state} cannot be used ({error}): `trainyard cloud reset` starts with an empty cloud"
            ) from None
        with store.transaction():
            identity.seed_tenancy(store)
            count_usage(store)
        # A killed server may have written files that it never recorded.
        in_use = files_in_use(store)
        objects = home / "objects"
        for file in (*objects.iterdir(), *(objects / "incoming").iterdir()):
            if file.is_file() and file.name not in in_use:
                file.unlink()
        background_tasks.remove_folders(home / "runs", (run.id for run in store.live("job-run")))
        credentials = tenancy.load_credentials(
            home, partial(users.find_api_key, store), partial(current_principal, store)
        )
        cloud = OciCloud(home=home, store=store, credentials=credentials)
        cloud.access = AccessControl(store)
        cloud.faults = Faults(FaultTable(store))
        return cloud

    async def start_hosts(self, make_fabric: MakeFabric) -> None:
        fabric = make_fabric((SERVICES_ADDRESS, OBJECT_STORAGE_ADDRESS))
        self._cloud.hosts = Hosts(self._cloud.home / "runs", fabric, JobRuns(self._cloud))
        self._cloud.hosts.recover()

    def upkeep(self) -> Sequence[Coroutine[Any, Any, None]]:
        return background_tasks.keep_pruned(self._cloud), background_tasks.keep_measured(self._cloud)

    async def stop_hosts(self) -> None:
        await self._cloud.hosts.stop()

    async def close(self) -> None:
        self._cloud.store.close()


def current_principal(store: StateStore, principal: Caller) -> Caller | None:
    """The principal with its present values, such as its compartment; None if it was deleted."""
    resource = store.get(principal.id)
    if resource is None or not resource.live:
        return None
    return replace(principal, compartment=resource.compartment) if principal.resource_kind else principal


SERVER_PART = OciServerPart
