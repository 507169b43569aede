# SPDX-License-Identifier: Apache-2.0
"""The state of a node, from its own report and from the state of its instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from components.aws.client.machines import Instance, find_instances
from components.aws.client.ticket_queue import ENDED, Queue, QueueView
from components.aws.client.tickets import RunId, Ticket
from components.platform.calls import Call
from components.platform.runs import DELETED, NodeRun
from components.s3 import Session
from launcher.escaping import terminal_line

_GONE_RECORD = "its ticket is no longer in the queue"
_LONGEST_DETAILS = 2000
_LARGEST_CODE = 1 << 31


@dataclass(frozen=True)
class StartFacts:
    """Facts about a start besides the reports of its nodes: whether it was cancelled, which run it waits for, and the
    instance of each node."""

    cancelled: bool
    instances: Mapping[str, Instance]
    waits: str = ""


def deleted_ticket_node(node: NodeRun) -> NodeRun:
    return NodeRun(node.name, node.id, DELETED, _GONE_RECORD)


def is_over(start: Mapping[str, Any] | None) -> bool:
    return start is not None and start.get("state") in ENDED


def observe_nodes(session: Session, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
    """The nodes as they are now. Each start is read once."""
    starts: dict[tuple[str, str, int], dict[str, NodeRun]] = {}
    seen = []
    for node in nodes:
        run = RunId.parse(node.id)
        if run is None:
            seen.append(deleted_ticket_node(node))
            continue
        if run[:3] not in starts:
            ticket = Queue(session, call, run.cluster).ticket(run.number)
            starts[run[:3]] = {}
            if ticket is not None:
                names = [other.name for other in nodes if (RunId.parse(other.id) or ("",))[:3] == run[:3]]
                queue = Queue(session, call, ticket.cluster)
                starts[run[:3]] = observe_start(ticket, names, queue, partial(find_instances, queue))
        seen.append(starts[run[:3]].get(node.name) or deleted_ticket_node(node))
    return seen


def observe_start(
    ticket: Ticket, names: Sequence[str], queue: QueueView, find: Callable[[list[str]], Mapping[str, Instance]]
) -> dict[str, NodeRun]:
    """The nodes of one start, by name. Slow calls are made only while their results matter."""
    starts = queue.starts(ticket.number, names)
    going_on = [name for name in names if not is_over(starts.get(name))]
    facts = StartFacts(False, {})
    if going_on:
        cancelled, instances = queue.is_cancelled(ticket.number), find(going_on)
        waits = ""
        if not starts and not cancelled and (holder := queue.holder(ticket.number)):
            holding, ahead = holder
            more = f", the first of {ahead} before it" if ahead > 1 else ""
            waits = f"waits for run {holding.title} on {queue.cluster.job}{more}"
        facts = StartFacts(cancelled, instances, waits)
    return {name: ticket_node_run(ticket, name, starts.get(name), facts) for name in names}


def ticket_node_run(ticket: Ticket, name: str, start: Mapping[str, Any] | None, facts: StartFacts) -> NodeRun:
    """One node of a run. A terminated machine can no longer report, so the state of its instance decides."""
    run_id, instance = ticket.run_id(name), facts.instances.get(name)
    if start is not None and is_over(start):
        code = start.get("code")
        is_code = type(code) is int and 0 < abs(code) < _LARGEST_CODE
        details = _report_text(start, "details") or (f"exit code {code}" if is_code else "")
        began, ended = (_zoned_time(start, key) for key in ("startedAt", "finishedAt"))
        return NodeRun(name, run_id, str(start["state"]), details, began, ended)
    if start is not None:
        lost = _loss_reason(start, instance)
        state = "FAILED" if lost else "CANCELING" if facts.cancelled else "IN_PROGRESS"
        return NodeRun(
            name, run_id, state, lost or _report_text(start, "details") or "", _zoned_time(start, "startedAt")
        )
    if facts.cancelled:
        works = instance is not None and not instance.down
        return NodeRun(name, run_id, "CANCELING" if works else "CANCELED", "cancelled before it began")
    if instance is None or instance.gone:
        why = instance.words if instance is not None else "it has no instance"
        return NodeRun(name, run_id, "FAILED", why)
    if instance.down:
        return NodeRun(name, run_id, "ACCEPTED", instance.words)
    return NodeRun(name, run_id, "ACCEPTED", facts.waits)


def _loss_reason(start: Mapping[str, Any], instance: Instance | None) -> str:
    """The reason why a running node cannot continue, or ""."""
    began_on = start.get("instance")
    if instance is None:
        return f"its instance {terminal_line(str(began_on))} is gone"
    if isinstance(began_on, str) and began_on and began_on != instance.id:
        return f"its instance {terminal_line(began_on)} was replaced while it ran"
    return instance.words if instance.down else ""


def _zoned_time(start: Mapping[str, Any], key: str) -> str | None:
    """A time with its time zone. Readers compare times, and the report is untrusted."""
    text = _report_text(start, key) or ""
    try:
        return text if datetime.fromisoformat(text).tzinfo is not None else None
    except ValueError:
        return None


def _report_text(start: Mapping[str, Any], key: str) -> str | None:
    value = start.get(key)
    return terminal_line(value)[:_LONGEST_DETAILS] if isinstance(value, str) and value else None
