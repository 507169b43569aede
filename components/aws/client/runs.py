# SPDX-License-Identifier: Apache-2.0
"""Runs on AWS DL1: tickets in the queue of a cluster whose machines stay (docs/decisions/0021)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from components.aws.client import cloudwatch_logs, machines, ticket_states
from components.aws.client.aws_session import aws_session_of_caller
from components.aws.client.start_folders import StatusFolder, parse_s3_folder, read_ended_state
from components.aws.client.ticket_queue import Queue
from components.aws.client.ticket_status import AwsRunReader
from components.aws.client.tickets import PLATFORM, Cluster, RunId, Ticket, inputs_of_ticket, ticket_of
from components.platform.calls import Call, ProviderError
from components.platform.client import LineMerger, RunClients, RunReader, Runs, Where
from components.platform.runs import NodeRun, RunSpec, Try, ending_of, liked_by, ranks_of_node
from components.platform.status import RunStatus, WantedRuns
from components.platform.values import Properties
from components.s3 import ACCESS_CODES, Session, code_of

if TYPE_CHECKING:
    from components.platform.tries import PlannedTry, ReadyTry


def is_aws_run(run_id: str) -> bool:
    """Whether this is the id of a run on AWS."""
    return run_id.startswith(f"{PLATFORM}/")


def aws_runs_of_caller(where: Where) -> AwsRuns:
    bucket = where.place or (where.bucket() if where.bucket else "")
    return AwsRuns(aws_session_of_caller(where), bucket)


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

    def queue(self, call: Call, cluster: Cluster, access_minutes: float = 0.0) -> Queue:
        return Queue(self.session, call, cluster, access_minutes)

    def ensure(self, call: Call, spec: RunSpec, started: Sequence[NodeRun]) -> Iterator[NodeRun]:
        queue = self.queue(call, Cluster.of(spec.own["cluster"]), spec.timeouts.access)
        names = [node.name for node in spec.nodes]
        ticket = None if call.anew and not started else self._put_before(queue, spec)
        if ticket is not None and not started:
            call.report.info(f"an interrupted attempt had put the ticket {ticket.start} already; going on from there")
        machines.bring_machines_up(queue, names, spec.timeouts.started)
        if ticket is None:
            call.report.status(f"queueing {spec.display_name}")
            created = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            ticket = queue.put(partial(ticket_of, spec, created_at=created))
            call.report.info(f"run {spec.display_name}: {ticket.start} in the queue of {queue.cluster.job}")
        for name in names:
            yield NodeRun(name, ticket.run_id(name), "ACCEPTED")
        # A machine that was about to stop did not see the ticket. From here on, the run is in Pulumi's state.
        instances = machines.bring_machines_up(queue, names, spec.timeouts.started)
        machines.wake_machines(queue, list(instances.values()), f"trainyard {ticket.title} of {queue.cluster.job}")

    def started(self, call: Call, spec: RunSpec) -> list[NodeRun]:
        ticket = self._put_before(self.queue(call, Cluster.of(spec.own["cluster"])), spec)
        return ticket.unseen_nodes if ticket else []

    def _put_before(self, queue: Queue, spec: RunSpec) -> Ticket | None:
        """The ticket that an interrupted `up` put."""
        mine = (one for one in queue.tickets() if one.fingerprint == spec.fingerprint and not one.released)
        return next(mine, None)

    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        return ticket_states.observe_nodes(self.session, call, nodes)

    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        for ticket, names in self._tickets(call, nodes):
            queue = self.queue(call, ticket.cluster)
            queue.ask_to_cancel(ticket.number)
            instances = machines.find_instances(queue, names)
            why = f"trainyard cancels {ticket.title} of {ticket.cluster.job}"
            machines.wake_machines(queue, list(instances.values()), why, patient=False)

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
        return AwsRunReader(self.session, self.bucket, wanted)

    def merger(self, call: Call, ranks: frozenset[int]) -> LineMerger:
        return cloudwatch_logs.AwsLogMerger(self.session, call, ranks=ranks)

    def place_of(self, run: RunStatus) -> StatusFolder | None:
        return parse_s3_folder(run.folder)

    def prepare_try(self, call: Call, planned: PlannedTry, folder: Path) -> ReadyTry:
        from components.aws.client.ticket_tries import prepare_aws_try

        return prepare_aws_try(self.session, self.bucket, call, planned, folder)

    def access_lacked(self, planned: PlannedTry, error: ProviderError) -> str:
        return error.remedy if code_of(error.__cause__) in ACCESS_CODES else ""

    def last_lines(self, call: Call, node: NodeRun, limit: int, patiently: bool = True) -> list[str]:
        for ticket, names in self._tickets(call, [node]):
            return cloudwatch_logs.last_cloudwatch_lines(self.session, call, ticket, names[0], limit, patiently)
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
        return inputs_of_ticket(ticket), self.observe(call, nodes)

    def ending(self, call: Call, run_id: str, inputs: Properties) -> str | None:
        run = RunId.parse(run_id)
        if run is None:
            return None
        start = f"s{run.number:08}"
        nodes = [(node, rank) for node in inputs.get("nodes") or () for rank in ranks_of_node(node)]
        return ending_of([read_ended_state(self.session, call, start, node, rank) for node, rank in nodes])


RUN_CLIENTS = RunClients(is_aws_run, lambda config: AwsRuns(Session.of(config)), aws_runs_of_caller)
