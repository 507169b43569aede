# SPDX-License-Identifier: Apache-2.0
"""Our own operations that add, list and end faults. Only administrators may call them."""

from __future__ import annotations

from localcloud.server.errors import not_found
from localcloud.server.http import Reply
from localcloud.server.operations import ApiCall, ApiOperation

PATH = "/.trainyard/faults"
SERVICE = "trainyard"


def _list(call: ApiCall) -> Reply:
    return Reply(200, call.cloud.faults.list())


def _add(call: ApiCall) -> Reply:
    return Reply(200, call.cloud.faults.add(call.json()))


def _clear(call: ApiCall) -> Reply:
    return Reply(200, {"cleared": call.cloud.faults.clear()})


def _clear_one(call: ApiCall) -> Reply:
    if not call.cloud.faults.clear(call.params["faultId"]):
        raise not_found("fault")
    return Reply(200, {"cleared": 1})


def operations() -> list[ApiOperation]:
    return [
        ApiOperation("ListFaults", "GET", PATH, _list, SERVICE),
        ApiOperation("AddFault", "POST", PATH, _add, SERVICE),
        ApiOperation("ClearFaults", "DELETE", PATH, _clear, SERVICE),
        ApiOperation("ClearFault", "DELETE", f"{PATH}/{{faultId}}", _clear_one, SERVICE),
    ]
