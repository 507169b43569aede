# SPDX-License-Identifier: Apache-2.0
"""What is inside of a run of job runs: what its launchers reported, and its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.console.platform import ENTRIES, RunContent, shown_lines
from localcloud.console.runs import RunNode
from localcloud.oci.console.runs import OciRun
from localcloud.oci.services.object_storage import listing
from localcloud.server import http, progress
from localcloud.server.operations import LocalCloud

# A run prints to one log. A stranger's may print to so many.
_LOGS = 4
# The log may get a line so many seconds after its run has ended.
_LATE_SECONDS = 120.0
_TIMES = (("accepted", "timeAccepted"), ("started", "timeStarted"), ("finished", "timeFinished"))


def content_of(cloud: LocalCloud, run: OciRun, most: int) -> RunContent:
    bucket = _bucket(cloud, run)
    points = progress.progress_of(cloud.store, bucket, run.place.prefix, most) if run.place and bucket else {}
    statuses = {node.rank: _status(cloud, run, node, bucket) for node in run.nodes}
    return RunContent(_facts(cloud, run), statuses, points, _printed(cloud, run))


def _facts(cloud: LocalCloud, run: OciRun) -> list[list[str]]:
    job = cloud.store.get(run.job)
    first = cloud.store.get(run.key)
    body = first.body if first else {}
    return [
        ["job", job.name if job else run.job],
        *([name, str(body[field])] for name, field in _TIMES if body.get(field)),
    ]


def _bucket(cloud: LocalCloud, run: OciRun) -> str:
    buckets = cloud.store.live("bucket", name=run.place.bucket) if run.place else ()
    return buckets[0].id if buckets else ""


def _status(cloud: LocalCloud, run: OciRun, node: RunNode, bucket: str) -> Mapping[str, Any]:
    """What the node's launcher says now. Empty where there is nothing."""
    if run.place is None or not bucket:
        return {}
    item = listing.lookup(cloud.store, bucket, run.place.status(node.rank))
    return progress.read_status(cloud.objects / item.file) if item and item.size <= progress.LONGEST_BYTES else {}


def _printed(cloud: LocalCloud, run: OciRun) -> list[str]:
    """The last lines of all ranks, in the order of time."""
    ranks = {node.run.id: node for node in run.nodes}
    logs = {node.log for node in run.nodes if node.log}
    ends = [http.parse_rfc3339(node.run.finished_at) for node in run.nodes if node.run.finished_at]
    last = max(ends) + _LATE_SECONDS if run.over and len(ends) == len(run.nodes) else http.now() + _LATE_SECONDS
    lines: list[tuple[float, int, str, str]] = []
    for log in sorted(logs)[:_LOGS]:
        rows = cloud.store.connection.execute(
            f"SELECT time, sequence, source, subject, data FROM log_lines WHERE log = ? AND time BETWEEN ? AND ?"
            f" AND source IN ({', '.join('?' * len(ranks))}) ORDER BY time DESC, sequence DESC LIMIT ?",
            (log, run.created - _LATE_SECONDS, last, *ranks, ENTRIES),
        )
        for moment, sequence, source, subject, data in rows:
            rank = subject if "/" in subject else str(ranks[source].rank)
            lines.append((moment, sequence, rank, str(data)))
    return shown_lines(run, (entry[2:] for entry in sorted(lines)[-ENTRIES:]))
