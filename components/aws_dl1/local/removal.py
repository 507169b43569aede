# SPDX-License-Identifier: Apache-2.0
"""What goes with a stack of AWS: its live runs, its machines, objects and images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from components.aws_dl1.client.queue import Queue
from components.aws_dl1.client.runs import AwsRunPlatform
from components.aws_dl1.client.tickets import Cluster, Ticket
from components.aws_dl1.local.calls import ask, ask_if_there, pages
from components.aws_dl1.local.machines import describe_machines
from components.aws_dl1.local.sessions import DEPLOYER, region_of, regions, session_of
from components.aws_dl1.local.types import BUCKET, INSTANCE, REPOSITORY, name_of
from components.platform.calls import Tell, call_of
from components.platform.local_cloud import LocalCloud
from components.platform.removal import LiveRun, Removal, data_line
from components.platform.runs import NodeRun
from components.platform.states import Row
from components.platform.waiting import wait_for_end
from components.s3.session import Session
from schemas.names import plural

# Enough to say how much it is; who keeps more knows that it is a lot.
_MOST_COUNTED = 1000
_MINUTES_TO_END = 20.0


def describe_removal(cloud: LocalCloud, rows: Sequence[Row], kept: Sequence[Row], tell: Tell) -> Removal:
    """`rows` are removed, `kept` stay."""
    session = session_of(cloud, DEPLOYER, region_of(rows))
    live = [_live_run(ticket, nodes) for ticket, nodes in _living(session, rows, tell)]
    machines = [f"ends     machine {line}" for line in describe_machines(cloud, rows, tell)]
    lines = (*machines, *_contents(session, rows, "goes", tell), *_contents(session, kept, "stays", tell))
    return Removal(tuple(live), lines)


def end_other_runs(cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
    """Runs on the machines that go, and that are in no state: tries, and tickets of people."""
    session = session_of(cloud, DEPLOYER, region_of(rows))
    own = {node["id"] for row in rows for node in (row.get("outputs") or {}).get("nodeRuns") or ()}
    others = [one for _, nodes in _living(session, rows, tell) for one in nodes if one.id not in own]
    if others:
        tell("Ending runs beside the stack's own: the machines that they run on go.")
        platform, call = AwsRunPlatform(session), call_of("down", tell)
        platform.cancel(call, others)
        wait_for_end(call, platform, others, _MINUTES_TO_END)


def list_data(cloud: LocalCloud, tell: Tell) -> Iterator[str]:
    """Every bucket of the account, and every repository of its regions."""
    for number, region in enumerate(regions()):
        session = session_of(cloud, DEPLOYER, region)
        if number == 0:
            for bucket in ask(tell, "List the buckets", session.client("s3").list_buckets)["Buckets"]:
                yield data_line("bucket", bucket["Name"], _objects(session, bucket["Name"], tell))
        for page in pages(tell, "List the repositories", session.client("ecr"), "describe_repositories"):
            for one in page["repositories"]:
                yield data_line("images", one["repositoryName"], _images(session, one["repositoryName"], tell))


def has_objects(cloud: LocalCloud, bucket: str, tell: Tell) -> bool:
    return bool(_objects(session_of(cloud, DEPLOYER, regions()[0]), bucket, tell))


def _living(session: Session, rows: Sequence[Row], tell: Tell) -> Iterator[tuple[Ticket, list[NodeRun]]]:
    """The starts that have not ended, on clusters whose machines go, each with its nodes."""
    platform, call = AwsRunPlatform(session), call_of("down", tell)
    for bucket, job in dict.fromkeys(_clusters(rows)):
        queue = Queue(session, call, Cluster(bucket, job))
        for ticket in reversed(ask_if_there(tell, "List the runs", queue.tickets) or []):
            nodes = platform.observe(call, [NodeRun(name, ticket.run_id(name), "") for name in ticket.node_names])
            if alive := [node for node in nodes if not node.over]:
                yield ticket, alive


def _clusters(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Bucket and job of each cluster with a machine among the rows."""
    jobs = {((row.get("outputs") or {}).get("tags") or {}).get("job") for row in rows if row["type"] == INSTANCE}
    for row in rows:
        cluster = (row.get("inputs") or {}).get("cluster")
        if isinstance(cluster, dict) and cluster.get("job") in jobs:
            yield str(cluster["bucket"]), str(cluster["job"])


def _live_run(ticket: Ticket, nodes: Sequence[NodeRun]) -> LiveRun:
    title = f"{ticket.tags.get('job', ticket.cluster.job)}/{ticket.tags.get('run') or ticket.text('run')}"
    states = {node.state for node in nodes}
    state = "IN_PROGRESS" if "IN_PROGRESS" in states else sorted(states)[0]
    return LiveRun(title, state, datetime.fromisoformat(ticket.text("createdAt").replace("Z", "+00:00")))


def _contents(session: Session, rows: Sequence[Row], fate: str, tell: Tell) -> Iterator[str]:
    for row in rows:
        if row["type"] == BUCKET and (inside := _objects(session, name_of(row), tell)):
            yield f"bucket   {name_of(row)} {fate} with its {inside}"
        if row["type"] == REPOSITORY and (inside := _images(session, name_of(row), tell)):
            yield f"images   {name_of(row)} {fate} with its {inside}"


def _objects(session: Session, bucket: str, tell: Tell) -> str:
    look = partial(session.client("s3").list_object_versions, Bucket=bucket, MaxKeys=_MOST_COUNTED)
    page: Any = ask_if_there(tell, f"Look into the bucket {bucket}", look) or {}
    names = {row["Key"] for row in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))}
    more = "more than " if page.get("IsTruncated") else ""
    return f"{more}{plural(len(names), 'object')}" if names else ""


def _images(session: Session, repository: str, tell: Tell) -> str:
    look = partial(session.client("ecr").list_images, repositoryName=repository)
    page: Any = ask_if_there(tell, f"Look into the repository {repository}", look) or {}
    return plural(len(page["imageIds"]), "image") if page.get("imageIds") else ""
