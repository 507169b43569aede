# SPDX-License-Identifier: Apache-2.0
"""The current runs of a stack, from its bucket: tickets of its clusters, and the launcher's status of each rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from components.aws.client import machines
from components.aws.client.start_folders import parse_s3_folder, read_status_object, start_folder_uri
from components.aws.client.ticket_queue import Queue, list_queues
from components.aws.client.ticket_states import observe_nodes
from components.aws.client.tickets import Cluster, Ticket
from components.platform import status
from components.platform.calls import Call, ProviderError
from components.platform.client import RunReader
from components.platform.runs import read_launch_document
from components.platform.status import MachineSeen, NodeStatus, RunStatus, WantedRuns, run_key
from components.s3 import ACCESS_CODES, Session, code_of
from launcher.escaping import terminal_line

_LONGEST_REASON = 500


@dataclass
class AwsRunReader(RunReader):
    session: Session
    bucket: str
    wanted: WantedRuns
    tickets: dict[str, Ticket] = field(default_factory=dict)
    _ended: dict[str, RunStatus] = field(default_factory=dict)
    _refused: bool = False

    def look(self, call: Call, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        seen: list[RunStatus] = []
        for queue in list_queues(self.session, call, self.bucket):
            tickets = self._tickets(queue)
            chosen = tickets if history else list({run_key(one.tags): one for one in reversed(tickets)}.values())
            seen += [self._run(call, ticket, deeply) for ticket in chosen]
        return sorted(seen, key=lambda run: (run.created, run.title))

    def machines(self, call: Call) -> list[MachineSeen]:
        """The current machines of the clusters whose jobs are wanted."""
        return [machine for queue in list_queues(self.session, call, self.bucket) for machine in self._machines(queue)]

    def _tickets(self, queue: Queue) -> list[Ticket]:
        """The wanted tickets, the newest first."""
        names = {number: f"{queue.cluster.job}/{number}" for number in queue.numbers()}
        missing = [number for number, name in names.items() if name not in self.tickets]
        self.tickets |= {names[ticket.number]: ticket for ticket in queue.tickets(missing)}
        known = [self.tickets[name] for name in names.values() if name in self.tickets]
        return [ticket for ticket in reversed(known) if self.wanted.includes(ticket.tags)]

    def _run(self, call: Call, ticket: Ticket, deeply: bool) -> RunStatus:
        main = ticket.run_id(ticket.node_names[0])
        if main in self._ended:
            return self._ended[main]
        document = read_launch_document(ticket.nodes[0].get("environment") or {})
        folder, times = start_folder_uri(document, ticket.start), document.get("attempt")
        runs = observe_nodes(self.session, call, ticket.unseen_nodes)
        nodes = []
        for row, run in zip(ticket.nodes, runs, strict=True):
            rank, log = row.get("rank"), ticket.stream(run.name) if ticket.cluster.log_group else None
            nodes.append(NodeStatus(rank if type(rank) is int else 0, run, str(row.get("role") or ""), log))
        if deeply:
            nodes = [replace(node, launcher_status=self._launcher_status(call, folder, node)) for node in nodes]
        tags = ticket.tags
        seen = RunStatus(
            stack=tags.get("stack", ""),
            job=tags.get("job", ""),
            name=tags.get("run", ""),
            attempt=times if type(times) is int else None,
            created=_created_at(ticket.text("createdAt")),
            nodes=tuple(sorted(nodes, key=lambda node: (node.rank, node.run.name))),
            folder=folder,
            told_by_nodes=True,
        )
        if deeply and seen.over:
            self._ended[main] = seen
        return seen

    def _launcher_status(self, call: Call, folder: str | None, node: NodeStatus) -> Mapping[str, Any] | None:
        """The status object of a rank. None if it does not exist yet, or may not be read."""
        place = parse_s3_folder(folder)
        if place is None or node.run.state == "ACCEPTED" or self._refused:
            return None
        try:
            content = read_status_object(self.session, replace(call, patience=0.0), "Read a status", place, node.rank)
        except ProviderError as error:
            if code_of(error.__cause__) in ACCESS_CODES:
                self._refused = True
                call.report.warning(f"progress is not shown: {error.cause}")
            return None
        return status.parse_status(content) if content is not None else None

    def _machines(self, queue: Queue) -> Iterator[MachineSeen]:
        """The machines of a cluster. They cost money even before the first run. Then stack and cluster name them."""
        newest = next(iter(self._tickets(queue)), None)
        if newest is None and not self._is_wanted(queue.cluster):
            return
        cluster = newest.cluster if newest else replace(queue.cluster, stack=self.wanted.stack or "")
        job = newest.tags.get("job", cluster.job) if newest else cluster.job
        names = newest.node_names if newest else None
        there = machines.find_instances(Queue(self.session, queue.call, cluster), names)
        instances = {name: there[name] for name in (names or sorted(there)) if name in there}
        reports = queue.reports(list(instances))
        for name, one in instances.items():
            if one.gone:
                continue
            report = None if one.down else machines.report_of_this_boot(one, reports.get(name))
            doing = report.state if report is not None else ""
            reason = terminal_line(report.text("reason"))[:_LONGEST_REASON] if report is not None else ""
            yield MachineSeen(job, name, one.id, one.state, doing, one.launched, reason)

    def _is_wanted(self, cluster: Cluster) -> bool:
        """Whether a cluster without a ticket of a wanted run belongs to the wanted stack."""
        wanted = self.wanted
        return bool(wanted.stack) and wanted.run is None and wanted.job in (None, cluster.job)


def _created_at(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
