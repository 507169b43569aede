# SPDX-License-Identifier: Apache-2.0
"""Our own operation that tells what the nodes of a run said of their progress, from the beginning."""

from __future__ import annotations

from localcloud.api import progress
from localcloud.api.errors import not_found
from localcloud.api.http import Reply
from localcloud.api.operations import ApiCall, ApiOperation
from provider.runs.progress import MOST_POINTS

PATH = "/.trainyard/progress"
SERVICE = "trainyard"


def _read(call: ApiCall) -> Reply:
    named = call.needed("bucket")
    buckets = call.store.live("bucket", name=named)
    if not buckets:
        raise not_found("bucket")
    ranks = progress.progress_of(call.store, buckets[0].id, call.needed("folder"), MOST_POINTS)
    return Reply(
        200, {"ranks": {str(rank): [[one.moment, *one.content] for one in points] for rank, points in ranks.items()}}
    )


def operations() -> list[ApiOperation]:
    return [ApiOperation("ReadProgress", "GET", PATH, _read, SERVICE)]
