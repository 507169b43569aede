# SPDX-License-Identifier: Apache-2.0
"""Reads the lines that nodes printed, from CloudWatch Logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from components.aws.client.ticket_queue import Queue
from components.aws.client.tickets import RunId, Ticket
from components.platform.calls import Call
from components.platform.log_lines import ENTRIES_OF_A_LINE, LogMerger, look_for_lines, name_of_node
from components.platform.status import NodeStatus, RunStatus
from components.s3 import Session, read_from_aws_if_exists
from launcher.redraws import whole_lines

_MOST = 10_000


@dataclass(frozen=True, slots=True)
class LogEvent:
    """`time`: milliseconds since 1970."""

    time: int
    text: str


def last_cloudwatch_lines(
    session: Session, call: Call, ticket: Ticket, node: str, limit: int, patiently: bool
) -> list[str]:
    """The last lines of a node, oldest first."""

    def read() -> list[str]:
        entries = min(limit * ENTRIES_OF_A_LINE, _MOST)
        answer = _read_log_page(session, call, ticket, node, limit=entries, startFromHead=False)
        events = answer["events"] if answer is not None else ()
        return whole_lines(str(event.get("message") or "").rstrip() for event in events)[-limit:]

    return look_for_lines(call, read, patiently)


def lines_after(
    session: Session, call: Call, ticket: Ticket, node: str, token: str | None
) -> Iterator[tuple[LogEvent, str | None]]:
    """Every line of a node after the place that `token` names, each with the place after it."""
    while True:
        where: dict[str, Any] = {"nextToken": token} if token else {}
        answer = _read_log_page(session, call, ticket, node, startFromHead=True, **where)
        if answer is None:
            return
        after = answer.get("nextForwardToken")
        for event in answer["events"]:
            yield LogEvent(int(event.get("timestamp") or 0), str(event.get("message") or "").rstrip()), after
        # The same token again means that there are no more lines.
        if not after or after == token:
            return
        token = after


def _read_log_page(session: Session, call: Call, ticket: Ticket, node: str, **options: Any) -> Any:
    """A page of a node's stream. None if the stream does not exist yet."""
    client = session.client("logs", ticket.cluster.region)
    ask = partial(
        client.get_log_events, logGroupName=ticket.cluster.log_group, logStreamName=ticket.stream(node), **options
    )
    return read_from_aws_if_exists(call, "Read the run's log", ask) if ticket.cluster.log_group else None


@dataclass
class AwsLogMerger(LogMerger):
    session: Session
    call: Call
    _after: dict[str, str | None] = field(default_factory=dict)
    _tickets: dict[str, Ticket | None] = field(default_factory=dict)

    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        lines: list[tuple[int, str, str]] = []
        for node in (node for run in runs for node in run.nodes if node.log is not None):
            if not self.ranks or node.rank in self.ranks:
                lines += self._of(node)
        for _, name, text in sorted(lines, key=lambda line: line[0]):
            yield from self.add(name, text)

    def _of(self, node: NodeStatus) -> Iterator[tuple[int, str, str]]:
        ticket = self._ticket(node.run.id)
        if ticket is None:
            return
        for event, after in lines_after(self.session, self.call, ticket, node.run.name, self._after.get(node.run.id)):
            self._after[node.run.id] = after
            yield event.time, name_of_node(node), event.text

    def _ticket(self, run_id: str) -> Ticket | None:
        if run_id not in self._tickets:
            run = RunId.parse(run_id)
            read = Queue(self.session, self.call, run.cluster).ticket(run.number) if run else None
            self._tickets[run_id] = read
        return self._tickets[run_id]
