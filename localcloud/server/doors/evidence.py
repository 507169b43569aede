# SPDX-License-Identifier: Apache-2.0
"""Our own operations that show what the firewalls of a run saw, and whether this machine has firewalls."""

from __future__ import annotations

from localcloud.server.errors import not_found
from localcloud.server.http import Reply
from localcloud.server.operations import ApiCall, ApiOperation

PATH = "/.trainyard/evidence"
HOSTS_PATH = "/.trainyard/hosts"
SERVICE = "trainyard"


def _read(call: ApiCall) -> Reply:
    run = call.needed("run")
    resource = call.store.get(run)
    is_job_run = resource is not None and resource.kind == "job-run"
    if not is_job_run and not any(hosts.has(run) for hosts in call.cloud.other_hosts):
        raise not_found("job run")

    async def read() -> Reply:
        return Reply(200, await call.cloud.evidence(run))

    return Reply(later=read)


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
