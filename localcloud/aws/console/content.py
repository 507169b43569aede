# SPDX-License-Identifier: Apache-2.0
"""What is inside of a run: what its launchers say in the bucket, and its log streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from components.aws.client.tickets import Cluster
from localcloud.aws.account import ACCOUNT, REGION
from localcloud.aws.console.runs import AwsRun
from localcloud.aws.console.state import InnerQueue
from localcloud.console.platform import ENTRIES, Points, RunContent, shown_lines
from localcloud.console.runs import RunNode
from localcloud.server import progress


def content_of(run: AwsRun, points: Points) -> RunContent:
    cluster = run.ticket.cluster
    facts = [
        ["cluster", cluster.job],
        ["start", run.ticket.start],
        ["accepted", run.ticket.text("createdAt")],
        ["bucket", cluster.bucket],
        ["log group", cluster.log_group or "none"],
    ]
    return RunContent(facts, {node.rank: _status(run, node) for node in run.nodes}, points, _printed(run))


def _status(run: AwsRun, node: RunNode) -> Mapping[str, Any]:
    """What the node's launcher says now. Empty where there is nothing."""
    if run.place is None:
        return {}
    read = InnerQueue(Cluster(run.place.bucket, "")).read(run.place.status(node.rank))
    return progress.parse_status(read[0]) if read else {}


def _printed(run: AwsRun) -> list[str]:
    """The last lines of all ranks, in the order of time."""
    lines = sorted(line for node in run.nodes for line in _lines(run, node))[-ENTRIES:]
    return shown_lines(run, (entry[2:] for entry in lines))


def _lines(run: AwsRun, node: RunNode) -> Iterator[tuple[int, int, int, str]]:
    """Each with its time and its place among the lines of that time."""
    from moto.logs.models import logs_backends

    cluster = run.ticket.cluster
    backend = dict.get(logs_backends[ACCOUNT], cluster.region or REGION)
    group = backend.groups.get(cluster.log_group) if backend else None
    stream = group.streams.get(run.ticket.stream(node.log)) if group else None
    mark = f"[{node.run.name}] "
    for place, event in enumerate(stream.events[-ENTRIES:] if stream else ()):
        # The launcher marks its lines with the node already: that mark is not said twice.
        yield int(event.timestamp), place, node.rank, str(event.message).removeprefix(mark).rstrip()
