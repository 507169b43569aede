# SPDX-License-Identifier: Apache-2.0
"""The door by which a person reads what a run's firewalls saw, while it runs and after."""

from __future__ import annotations

from localcloud.api.errors import not_found
from localcloud.api.http import Reply
from localcloud.api.operations import Call, Operation

PATH = "/.trainyard/evidence"
SERVICE = "trainyard"


def _read(call: Call) -> Reply:
    run = call.needed("run")
    found = call.store.get(run)
    if found is None or found.kind != "job-run":
        raise not_found("job run")

    async def read() -> Reply:
        seen = await call.cloud.hosts.evidence(run)
        return Reply(200, seen) if seen else Reply(404, {"code": "NotFound", "message": f"no evidence of {run} yet"})

    return Reply(later=read)


def operations() -> list[Operation]:
    return [Operation("ReadEvidence", "GET", PATH, _read, SERVICE)]
