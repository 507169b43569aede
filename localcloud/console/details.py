# SPDX-License-Identifier: Apache-2.0
"""One training run for the console: its ranks, how far they came, what they printed. Everything is bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from localcloud.api import clock, progress
from localcloud.api.operations import LocalCloud
from localcloud.api.services.object_storage import stored
from localcloud.console.runs import RunNode, TrainingRun
from provider.runs.progress import ProgressPoint, metric_names

LINES = 40
# So many metrics get a curve, and so many points are sent for all ranks of a run together.
_CURVES, _MOST_POINTS, _LEAST_POINTS = 4, 1_600, 12
_LONGEST_TEXT, _LONGEST_LINE = 300, 2_000
# The log may get a line so many seconds after its run has ended.
_LATE_SECONDS = 120.0
_TIMES = (("accepted", "timeAccepted"), ("started", "timeStarted"), ("finished", "timeFinished"))
Points = Mapping[int, Sequence[ProgressPoint]]


def run_details(cloud: LocalCloud, run: TrainingRun, network: Mapping[str, Any]) -> dict[str, Any]:
    bucket = _bucket(cloud, run)
    most = max(_LEAST_POINTS, _MOST_POINTS // max(1, len(run.nodes)))
    points: Points = progress.progress_of(cloud.store, bucket, run.place.prefix, most) if run.place and bucket else {}
    return {
        "facts": _facts(cloud, run),
        "ranks": [_rank(cloud, run, node, bucket, points.get(node.rank, ())) for node in run.nodes],
        "curves": _curves(run, points),
        "network": network,
        "lines": _printed(cloud, run),
    }


def _facts(cloud: LocalCloud, run: TrainingRun) -> list[list[str]]:
    job = cloud.store.get(run.job)
    first = cloud.store.get(run.key)
    body = first.body if first else {}
    return [
        ["job", job.name if job else run.job],
        *([name, str(body[field])] for name, field in _TIMES if body.get(field)),
        ["id", run.key],
        ["variables", ", ".join(run.variables) or "none"],
    ]


def _bucket(cloud: LocalCloud, run: TrainingRun) -> str:
    buckets = cloud.store.live("bucket", name=run.place.bucket) if run.place else ()
    return buckets[0].id if buckets else ""


def _rank(
    cloud: LocalCloud, run: TrainingRun, node: RunNode, bucket: str, points: Sequence[ProgressPoint]
) -> dict[str, Any]:
    status = _status(cloud, run, node, bucket)
    last = points[-1] if points else None
    state = node.run.state
    if state == "IN_PROGRESS":  # the launcher knows more
        state = _text(status.get("state")) or state
    return {
        "rank": node.rank,
        "role": node.role,
        "node": node.run.name,
        "state": state,
        "over": node.run.over,
        "started": node.run.started_at,
        "finished": node.run.finished_at,
        "step": last.step if last else None,
        "total": last.total if last else None,
        "metrics": [[name, value] for name, value in last.metrics.items()] if last else [],
        "note": _text(status.get("reason")) or node.run.details[:_LONGEST_TEXT],
    }


def _status(cloud: LocalCloud, run: TrainingRun, node: RunNode, bucket: str) -> Mapping[str, Any]:
    """What the node's launcher says now. Empty where there is nothing."""
    if run.place is None or not bucket:
        return {}
    item = stored.lookup(cloud.store, bucket, run.place.status(node.rank))
    return progress.read_status(cloud.objects / item.file) if item and item.size <= progress.LONGEST_BYTES else {}


def _text(value: Any) -> str:
    return value[:_LONGEST_TEXT] if isinstance(value, str) else ""


def _curves(run: TrainingRun, points: Points) -> dict[str, Any]:
    """The steps and metrics of each rank over time. Times are seconds since the run was accepted."""
    ranks = {node.rank for node in run.nodes}
    names = metric_names([point for rank, own in points.items() if rank in ranks for point in own])
    return {
        "names": names[:_CURVES],
        "left": names[_CURVES:],
        "ranks": [
            {
                "rank": rank,
                "times": [_rounded(one.moment - run.created) for one in own],
                "steps": [_rounded(one.step) for one in own],
                "metrics": {name: [_rounded(one.metrics.get(name)) for one in own] for name in names[:_CURVES]},
            }
            for rank, own in points.items()
            if rank in ranks
        ],
    }


def _rounded(value: float | None) -> float | None:
    """Six digits are more than a curve shows, and shorter on the wire."""
    return None if value is None else float(f"{value:.6g}")


def _printed(cloud: LocalCloud, run: TrainingRun) -> list[str]:
    """The last lines of all ranks, in the order of time."""
    ranks = {node.run.id: node for node in run.nodes}
    logs = {node.log for node in run.nodes if node.log}
    ends = [clock.parse_rfc3339(node.run.finished_at) for node in run.nodes if node.run.finished_at]
    last = max(ends) + _LATE_SECONDS if run.over and len(ends) == len(run.nodes) else clock.now() + _LATE_SECONDS
    lines: list[tuple[float, int, str]] = []
    for log in sorted(logs)[:_CURVES]:
        rows = cloud.store.connection.execute(
            f"SELECT time, sequence, source, subject, data FROM log_lines WHERE log = ? AND time BETWEEN ? AND ?"
            f" AND source IN ({', '.join('?' * len(ranks))}) ORDER BY time DESC, sequence DESC LIMIT ?",
            (log, run.created - _LATE_SECONDS, last, *ranks, LINES),
        )
        for moment, sequence, source, subject, data in rows:
            prefix = _prefix(run, ranks[source], subject)
            lines.append((moment, sequence, f"{prefix}{str(data)[:_LONGEST_LINE]}"))
    return [text for _, _, text in sorted(lines)[-LINES:]]


def _prefix(run: TrainingRun, node: RunNode, subject: str) -> str:
    if len(run.nodes) == 1:
        return ""
    rank = subject if "/" in subject else str(node.rank)
    return f"[{rank}] "
