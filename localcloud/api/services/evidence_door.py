# SPDX-License-Identifier: Apache-2.0
"""Our own operations that show what the firewalls of a run saw, and whether this machine has firewalls."""

from __future__ import annotations

from localcloud.api.errors import not_found
from localcloud.api.http import Reply
from localcloud.api.operations import ApiCall, ApiOperation, MachineHosts

PATH = "/.trainyard/evidence"
HOSTS_PATH = "/.trainyard/hosts"
SERVICE = "trainyard"


def _read(call: ApiCall) -> Reply:
    run = call.needed("run")
    if hosts := next((one for one in call.cloud.other_hosts if one.has(run)), None):
        return Reply(later=lambda: _of_machine(hosts, run))
    resource = call.store.get(run)
    if resource is None or resource.kind != "job-run":
        raise not_found("job run")

    async def read() -> Reply:
        return Reply(200, await call.cloud.hosts.evidence(run))

    return Reply(later=read)


async def _of_machine(hosts: MachineHosts, machine: str) -> Reply:
    return Reply(200, await hosts.evidence(machine))


def _read_hosts(call: ApiCall) -> Reply:
    async def read() -> Reply:
        reason = await call.cloud.hosts.why_not_enforced()
        return Reply(200, {"enforced": not reason, "reason": reason, "isolation": call.cloud.isolation})

    return Reply(later=read)


def operations() -> list[ApiOperation]:
    return [
        ApiOperation("ReadEvidence", "GET", PATH, _read, SERVICE),
        ApiOperation("ReadHosts", "GET", HOSTS_PATH, _read_hosts, SERVICE),
    ]
