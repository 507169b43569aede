# SPDX-License-Identifier: Apache-2.0
"""Our own operation that lists the access decisions. Only administrators may call it."""

from __future__ import annotations

from localcloud.server.errors import invalid
from localcloud.server.http import Reply, whole_number
from localcloud.server.operations import ApiCall, ApiOperation

PATH = "/.trainyard/calls"
SERVICE = "trainyard"


def _list(call: ApiCall) -> Reply:
    since = whole_number(call.query.get("since", "0"))
    if since is None:
        raise invalid("since must be a number: the id of a row")
    records = {"": call.cloud.access.judgements, **call.cloud.records}
    judged = records.get(call.query.get("of", ""))
    if judged is None:
        raise invalid(f"of must be one of {', '.join(sorted(call.cloud.records))}, or absent")
    return Reply(200, {"calls": judged.since(since), "forgotten": judged.forgotten})


def operations() -> list[ApiOperation]:
    return [ApiOperation("ListCalls", "GET", PATH, _list, SERVICE)]
