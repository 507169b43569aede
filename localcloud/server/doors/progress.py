# SPDX-License-Identifier: Apache-2.0
"""Our own operation that tells what the nodes of a run said of their progress, from the beginning."""

from __future__ import annotations

from components.platform.progress import MOST_POINTS
from localcloud.server import progress
from localcloud.server.http import Reply
from localcloud.server.operations import ApiCall, ApiOperation

PATH = "/.trainyard/progress"
SERVICE = "trainyard"


def _read(call: ApiCall) -> Reply:
    named = call.needed("bucket")
    places = [bucket.id for bucket in call.store.live("bucket", name=named)] + [progress.elsewhere(named)]
    remembered = (progress.progress_of(call.store, place, call.needed("folder"), MOST_POINTS) for place in places)
    ranks = next((ranks for ranks in remembered if ranks), {})
    return Reply(
        200, {"ranks": {str(rank): [[one.moment, *one.content] for one in points] for rank, points in ranks.items()}}
    )


def operations() -> list[ApiOperation]:
    return [ApiOperation("ReadProgress", "GET", PATH, _read, SERVICE)]
