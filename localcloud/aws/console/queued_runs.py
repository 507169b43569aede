# SPDX-License-Identifier: Apache-2.0
"""Reads the training runs of all queues from moto's state. Parses each ticket once, and reads each ended start once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from components.aws.client import ticket_states
from components.aws.client.machines import Instance, newest_instance_of_each_node
from components.aws.client.start_folders import StatusFolder, parse_s3_folder, start_folder_uri
from components.aws.client.ticket_queue import LONGEST_BYTES, QueueView
from components.aws.client.tickets import ROOT, Cluster, Ticket
from components.platform.runs import read_launch_document
from launcher.escaping import terminal_line
from localcloud.aws.additions import machine_view
from localcloud.aws.moto_state import moto_backend
from localcloud.console.platform import LONGEST_NAME, MOST_RANKS, MOST_RUNS, RunNode, TrainingRun
from localcloud.server import http

_LONGEST_TITLE, _MOST_VARIABLES = 200, 500
Find = Callable[[Sequence[str]], Mapping[str, Instance]]


@dataclass(frozen=True, slots=True)
class AwsRun(TrainingRun):
    """A training run: the ticket that started it, and the folder with the status objects of its launchers."""

    ticket: Ticket
    place: StatusFolder | None

    @property
    def settled(self) -> bool:
        """Whether all nodes have reported their end. Otherwise the state follows from an instance, and may change."""
        return all(node.run.over and node.run.finished_at for node in self.nodes)


@dataclass
class RunBook:
    """The runs of one local AWS, with a cache. Only the simulation's thread uses it."""

    _seen: dict[tuple[str, str, int], tuple[str, AwsRun | None]] = field(default_factory=dict)

    def read(self) -> list[AwsRun]:
        """The newest runs, the newest first."""
        before, self._seen = self._seen, {}
        runs = [run for cluster in clusters_with_queue() for run in self._of(StateQueue(cluster), before)]
        return sorted(runs, key=lambda run: -run.created)[:MOST_RUNS]

    def _of(self, queue: StateQueue, before: Mapping[tuple[str, str, int], tuple[str, AwsRun | None]]) -> list[AwsRun]:
        runs, finds = [], dict[str, Find]()
        for number in queue.numbers()[-MOST_RUNS:]:
            key = (queue.cluster.bucket, queue.cluster.job, number)
            tag = queue.tag(queue.cluster.ticket(number))
            was, run = before.get(key, ("", None))
            if was != tag or (run is not None and not run.settled):
                ticket = run.ticket if run is not None and was == tag else queue.ticket(number)
                run = _queued_run(queue, ticket, finds) if ticket else None
            self._seen[key] = (tag, run)
            runs += [run] if run is not None else []
        return runs


def _queued_run(queue: StateQueue, ticket: Ticket, finds: dict[str, Find]) -> AwsRun:
    cluster = ticket.cluster
    if cluster.stack not in finds:
        finds[cluster.stack] = cached_lookup(lambda: newest_instances(cluster))
    find, names = finds[cluster.stack], ticket.node_names[:MOST_RANKS]
    seen = ticket_states.observe_start(ticket, names, replace(queue, cluster=cluster), find)
    environments = [node.get("environment") for node in ticket.nodes]
    variables = [one for one in environments if isinstance(one, Mapping)]
    document = read_launch_document(variables[0] if variables else {})
    nodes = []
    for row, name in zip(ticket.nodes, names, strict=False):
        instance, run, rank = find([name]).get(name), seen[name], row.get("rank")
        # A machine that was restarted has lost the counts of earlier runs.
        began_after = instance is not None and _parse_moment(run.finished_at or "") < instance.launched.timestamp()
        machine = "" if instance is None or (run.over and began_after) else instance.id
        role, short = str(row.get("role") or "")[:LONGEST_NAME], replace(run, name=run.name[:LONGEST_NAME])
        nodes.append(RunNode(rank if type(rank) is int else 0, role, short, run.name, machine))
    tags, attempt = ticket.tags, document.get("attempt")
    named = tags.get("job") and tags.get("run")
    title = f"{tags['job']}/{tags['run']}" if named else ticket.text("displayName") or ticket.text("run")
    return AwsRun(
        key=ticket.run_id(names[0]),
        stack=str(tags.get("stack") or "")[:_LONGEST_TITLE],
        title=title[:_LONGEST_TITLE],
        attempt=attempt if type(attempt) is int and abs(attempt) < 10**6 else None,
        created=_parse_moment(ticket.text("createdAt")),
        nodes=tuple(sorted(nodes, key=lambda node: (node.rank, node.run.name))),
        variables=tuple(sorted({str(name)[:LONGEST_NAME] for one in variables for name in one})[:_MOST_VARIABLES]),
        ticket=ticket,
        place=parse_s3_folder(start_folder_uri(document, ticket.start)),
    )


def _parse_moment(text: str) -> float:
    """A time in seconds; 0 for an invalid text. Any user of the bucket may have written it."""
    try:
        return max(0.0, http.parse_rfc3339(text))
    except (ValueError, OverflowError):
        return 0.0


def buckets_by_name() -> Mapping[str, Any]:
    """moto's buckets, by their names."""
    return dict(moto_backend("s3").buckets)


def living_objects(bucket: Any) -> Iterator[tuple[str, Any]]:
    """The objects of a bucket, without deleted ones that have old versions."""
    from moto.s3.models import FakeKey

    return ((name, one) for name, one in bucket.keys.items() if isinstance(one, FakeKey))


def clusters_with_queue() -> Iterator[Cluster]:
    """The clusters that have a queue."""
    for name, bucket in buckets_by_name().items():
        parts = (key.split("/") for key in dict.keys(bucket.keys) if key.startswith(f"{ROOT}/"))
        jobs = dict.fromkeys(part[2] for part in parts if len(part) > 3)
        yield from (Cluster(name, job) for job in jobs)


@dataclass(frozen=True)
class StateQueue(QueueView):
    """A cluster's queue in moto's state."""

    cluster: Cluster

    def keys(self, prefix: str) -> Iterator[str]:
        bucket = buckets_by_name().get(self.cluster.bucket)
        return iter([key for key in dict.keys(bucket.keys) if key.startswith(prefix)] if bucket else ())

    def read(self, key: str, what: str = "") -> tuple[bytes, str, datetime] | None:
        one = self._find(key)
        return (one.value, one.etag, with_zone(one.last_modified)) if one is not None else None

    def is_cancelled(self, number: int) -> bool:
        return self._find(self.cluster.cancellation(number)) is not None

    def tag(self, key: str) -> str:
        """The ETag of an object; "" if there is no object."""
        one = self._find(key)
        return str(one.etag) if one is not None else ""

    def _find(self, key: str) -> Any:
        from moto.s3.models import FakeKey

        bucket = buckets_by_name().get(self.cluster.bucket)
        one = bucket.keys.get(key) if bucket else None
        return one if isinstance(one, FakeKey) and one.size <= LONGEST_BYTES else None


def instance_of(one: Any) -> Instance:
    """moto's instance as an `Instance`, which AWS's clients otherwise read from EC2's responses."""
    reason = one.state_reason.message or one.state_transition_reason or ""
    return Instance(
        one.id, tags_by_name(one).get("node", ""), one.state, with_zone(one.launch_time), terminal_line(str(reason)),
        one.lifecycle == "spot",
    )  # fmt: skip


def newest_instances(cluster: Cluster) -> Mapping[str, Instance]:
    """The newest instance of each node of a cluster."""
    wanted = {"job": cluster.job, **({"stack": cluster.stack} if cluster.stack else {})}
    every = [one for backend in machine_view.ec2_backends_in_use() for one in backend.all_instances()]
    return newest_instance_of_each_node(
        instance_of(one) for one in every if wanted.items() <= tags_by_name(one).items()
    )


def with_zone(moment: datetime) -> datetime:
    """Adds the zone to a time of moto: it is UTC, but has no zone."""
    return moment.replace(tzinfo=UTC)


def tags_by_name(one: Any) -> dict[str, str]:
    return {str(tag["key"]): str(tag["value"]) for tag in one.get_tags()}


def cached_lookup(read: Callable[[], Mapping[str, Instance]]) -> Callable[[Sequence[str]], Mapping[str, Instance]]:
    """A function that calls `read` once, and then looks names up in the cached result."""
    cached: list[Mapping[str, Instance]] = []

    def ask(names: Sequence[str]) -> Mapping[str, Instance]:
        if not cached:
            cached.append(read())
        return {name: cached[0][name] for name in names if name in cached[0]}

    return ask
