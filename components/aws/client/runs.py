# SPDX-License-Identifier: Apache-2.0
"""Runs on AWS DL1: tickets in the queue of a cluster whose machines stay (docs/decisions/0021)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from components.aws.client import logs, machines, states
from components.aws.client.queue import Queue
from components.aws.client.session import session_of_caller
from components.aws.client.tickets import PLATFORM, ROOT, Cluster, RunId, Ticket, described_inputs, ticket_of
from components.platform.calls import Call, ProviderError
from components.platform.client import LineMerger, RunClients, RunReader, Runs, Where
from components.platform.runs import (
    NodeRun,
    RunSpec,
    Try,
    ending_of,
    folder_of,
    launch_document,
    liked_by,
    ranks_of_node,
    state_in,
)
from components.platform.status import LONGEST_BYTES, RunStatus, WantedRuns
from components.platform.values import Properties
from components.s3 import ACCESS_CODES, Session, code_of, pages, read_if_exists

if TYPE_CHECKING:
    from components.platform.tries import PlannedTry, ReadyTry

_URI = re.compile(r"s3://([^/]+)/(.+)")


class StatusFolder(NamedTuple):
    """A folder in a bucket."""

    bucket: str
    prefix: str

    def status(self, rank: int) -> str:
        """The name of a rank's status object."""
        return f"{self.prefix}/status/{rank}.json"


def parse_folder(uri: str | None) -> StatusFolder | None:
    """Reads `s3://bucket/prefix`. None for any other text."""
    parts = _URI.fullmatch(uri or "")
    return StatusFolder(parts[1], parts[2]) if parts else None


def start_folder(launch: Mapping[str, Any], start: str) -> str | None:
    """The folder of a start."""
    uri = folder_of(launch)
    return f"{uri}/{start}" if uri is not None else None


def ending(session: Session, call: Call, run_id: str, nodes: Sequence[Mapping[str, Any]]) -> str | None:
    """The result of a run. None if its objects do not show it."""
    run = RunId.parse(run_id)
    if run is None:
        return None
    start = f"s{run.number:08}"
    return ending_of([_state(session, call, start, node, rank) for node in nodes for rank in ranks_of_node(node)])


def _state(session: Session, call: Call, start: str, node: Mapping[str, Any], rank: int) -> str | None:
    place = parse_folder(start_folder(launch_document(node.get("environment") or {}), start))
    if place is None:
        return None
    try:
        content = read_status(session, call, "Read how the run ended", place, rank)
    except ProviderError:
        # We may have no access to the bucket. Then the state is not known.
        return None
    return state_in(content) if content is not None else None


def read_status(session: Session, call: Call, what: str, place: StatusFolder, rank: int) -> bytes | None:
    """The status object of a rank. None if it does not exist yet."""
    client = session.client("s3")

    def read() -> bytes:
        with client.get_object(Bucket=place.bucket, Key=place.status(rank))["Body"] as body:
            content: bytes = body.read(LONGEST_BYTES)
            return content

    return read_if_exists(call, what, read)


def knows(run_id: str) -> bool:
    """Whether this is the id of a run on AWS."""
    return run_id.startswith(f"{PLATFORM}/")


def runs_of_caller(where: Where) -> AwsRuns:
    bucket = where.place or (where.bucket() if where.bucket else "")
    return AwsRuns(session_of_caller(where), bucket)


@dataclass
class AwsRuns(Runs):
    session: Session
    bucket: str = ""
    unknown_place = "where are the runs? Name a stack: they are in its bucket"

    @property
    def place(self) -> str:
        return self.bucket

    @property
    def where(self) -> str:
        return f"the bucket {self.bucket}"

    def queues(self, call: Call) -> Iterator[Queue]:
        """The queues of all clusters in the bucket."""
        listing = pages(
            call, f"List the clusters of {self.bucket}", self.session.client("s3"), "list_objects_v2",
            Bucket=self.bucket, Prefix=f"{ROOT}/", Delimiter="/",
        )  # fmt: skip
        for page in listing:
            for row in page.get("CommonPrefixes") or ():
                yield self.queue(call, Cluster(self.bucket, row["Prefix"].split("/")[-2]))

    def queue(self, call: Call, cluster: Cluster, access_minutes: float = 0.0) -> Queue:
        return Queue(self.session, call, cluster, access_minutes)

    def ensure(self, call: Call, spec: RunSpec, started: Sequence[NodeRun]) -> Iterator[NodeRun]:
        queue = self.queue(call, Cluster.of(spec.own["cluster"]), spec.timeouts.access)
        names = [node.name for node in spec.nodes]
        ticket = None if call.anew and not started else self._put_before(queue, spec)
        if ticket is not None and not started:
            call.report.info(f"an interrupted attempt had put the ticket {ticket.start} already; going on from there")
        machines.bring_up(queue, names, spec.timeouts.started)
        if ticket is None:
            call.report.status(f"queueing {spec.display_name}")
            created = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            ticket = queue.put(partial(ticket_of, spec, created_at=created))
            call.report.info(f"run {spec.display_name}: {ticket.start} in the queue of {queue.cluster.job}")
        for name in names:
            yield NodeRun(name, ticket.run_id(name), "ACCEPTED")
        # A machine that was about to stop did not see the ticket. From here on, the run is in Pulumi's state.
        instances = machines.bring_up(queue, names, spec.timeouts.started)
        machines.wake(queue, list(instances.values()), f"trainyard {ticket.title} of {queue.cluster.job}")

    def started(self, call: Call, spec: RunSpec) -> list[NodeRun]:
        ticket = self._put_before(self.queue(call, Cluster.of(spec.own["cluster"])), spec)
        return ticket.unseen_nodes if ticket else []

    def _put_before(self, queue: Queue, spec: RunSpec) -> Ticket | None:
        """The ticket that an interrupted `up` put."""
        mine = (one for one in queue.tickets() if one.fingerprint == spec.fingerprint and not one.released)
        return next(mine, None)

    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        looks: dict[tuple[str, str, int], Callable[[NodeRun], NodeRun]] = {}
        seen = []
        for node in nodes:
            run = RunId.parse(node.id)
            if run is None:
                seen.append(states.deleted(node))
                continue
            if run[:3] not in looks:
                together = [other for other in nodes if (RunId.parse(other.id) or ("",))[:3] == run[:3]]
                looks[run[:3]] = self._look(call, run, [other.name for other in together])
            seen.append(looks[run[:3]](node))
        return seen

    def _look(self, call: Call, run: RunId, names: Sequence[str]) -> Callable[[NodeRun], NodeRun]:
        """The current states of one start's nodes. Slow calls are made only while their results matter."""
        ticket = self.queue(call, run.cluster).ticket(run.number)
        if ticket is None:
            return states.deleted
        queue = self.queue(call, ticket.cluster)
        seen = states.start_as_it_is(ticket, names, queue, lambda going_on: machines.find_instances(queue, going_on))
        return lambda node: seen[node.name]

    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        for ticket, names in self._tickets(call, nodes):
            queue = self.queue(call, ticket.cluster)
            queue.ask_to_cancel(ticket.number)
            instances = machines.find_instances(queue, names)
            why = f"trainyard cancels {ticket.title} of {ticket.cluster.job}"
            machines.wake(queue, list(instances.values()), why, patient=False)

    def release(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        for ticket, _ in self._tickets(call, nodes):
            self.queue(call, ticket.cluster).change(ticket.number, lambda content: content.update(released=True))

    def relabel(self, call: Call, spec: RunSpec, nodes: Sequence[NodeRun]) -> None:
        labels = {"displayName": spec.display_name, "tags": dict(spec.tags), "fingerprint": spec.fingerprint}
        for ticket, _ in self._tickets(call, nodes):
            self.queue(call, ticket.cluster).change(ticket.number, lambda content: content.update(labels))

    def _tickets(self, call: Call, nodes: Sequence[NodeRun]) -> Iterator[tuple[Ticket, list[str]]]:
        """The existing tickets of these nodes, each with its nodes."""
        runs = [run for run in (RunId.parse(node.id) for node in nodes) if run is not None]
        for first in {run[:3]: run for run in runs}.values():
            ticket = self.queue(call, first.cluster).ticket(first.number)
            if ticket is not None:
                yield ticket, [run.node for run in runs if run[:3] == first[:3]]

    def reader(self, wanted: WantedRuns) -> RunReader:
        from components.aws.client.status import Looker

        return Looker(self, wanted)

    def merger(self, call: Call, ranks: frozenset[int]) -> LineMerger:
        return logs.AwsLogMerger(self.session, call, ranks=ranks)

    def place_of(self, run: RunStatus) -> StatusFolder | None:
        return parse_folder(run.folder)

    def prepare_try(self, call: Call, planned: PlannedTry, folder: Path) -> ReadyTry:
        from components.aws.client.deployed import prepare

        return prepare(self, call, planned, folder)

    def access_lacked(self, planned: PlannedTry, error: ProviderError) -> str:
        return error.remedy if code_of(error.__cause__) in ACCESS_CODES else ""

    def last_lines(self, call: Call, node: NodeRun, limit: int, patiently: bool = True) -> list[str]:
        for ticket, names in self._tickets(call, [node]):
            return logs.last_lines(self.session, call, ticket, names[0], limit, patiently)
        raise ProviderError("the run's ticket no longer exists")

    def tries(self, call: Call, inputs: Properties, patiently: bool) -> list[Try]:
        cluster = Cluster.of(inputs["cluster"])
        if not patiently:
            call = replace(call, patience=0.0)
        try:
            tickets = self.queue(call, cluster).tickets()
        except ProviderError as error:
            if code_of(error.__cause__) == "NoSuchBucket":
                # If somebody removed the bucket, the cluster's runs are gone, too.
                return []
            raise
        mine = ((one, liked_by(one.fingerprint)) for one in tickets if not one.released)
        made = [self._try(call, ticket, like) for ticket, like in mine if like is not None]
        return [one for one in made if one.nodes]

    def _try(self, call: Call, ticket: Ticket, like: str) -> Try:
        nodes = self.observe(call, ticket.unseen_nodes)
        title = f"{ticket.tags.get('job', '')}/{ticket.tags.get('run', '')}"
        return Try(title, like, tuple(node for node in nodes if not node.over))

    def describe(self, call: Call, run_id: str) -> tuple[Properties, list[NodeRun]] | None:
        run = RunId.parse(run_id)
        ticket = self.queue(call, run.cluster).ticket(run.number) if run else None
        if ticket is None:
            return None
        nodes = ticket.unseen_nodes
        return described_inputs(ticket), self.observe(call, nodes)

    def ending(self, call: Call, run_id: str, inputs: Properties) -> str | None:
        return ending(self.session, call, run_id, inputs.get("nodes") or ())


RUN_CLIENTS = RunClients(knows, lambda config: AwsRuns(Session.of(config)), runs_of_caller)
