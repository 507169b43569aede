# SPDX-License-Identifier: Apache-2.0
"""Runs as text and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import click

from components.plan.show import json_text, table
from components.platform.status import MachineSeen, NodeStatus, RunStatus, duration, find_cause, progress, reason_of
from launcher.escaping import terminal
from provider.runs.lost import read_lost, total_words
from schemas.names import plural
from trainyard.runs.ranking import Ranking

_COLOURS = {"SUCCEEDED": "green", "FAILED": "red", "NEEDS_ATTENTION": "red", "CANCELED": "yellow"}
# So much of what was dropped is for people; JSON has the rest.
_MOST_DROPPED = 10


def text(runs: Sequence[RunStatus], now: datetime, colour: bool = False) -> str:
    """A head for each run, a row for each of its ranks, and what went wrong."""
    lines: list[str] = []
    for run in runs:
        lines.append(head_of(run, colour))
        rows = [("rank", "node", "state", "for", ""), *(_row(node, now) for node in run.nodes)]
        lines += [*map(terminal, table(rows)), *(f"  {line}" for line in problems_of(run))]
    return "\n".join(lines)


def machines_text(machines: Sequence[MachineSeen], now: datetime) -> str:
    """Which machines stay between runs, and since when those that cost are up."""
    rows = [
        (
            one.job,
            one.node,
            one.id,
            one.doing or one.state,
            f"up for {duration((now - one.since).total_seconds())}" if one.up else "not up",
            one.reason,
        )
        for one in machines
    ]
    up = sum(one.up for one in machines)
    return "\n".join([f"machines, {up} of {len(rows)} up:", *map(terminal, table(rows))]) if rows else ""


def head_of(run: RunStatus, colour: bool) -> str:
    attempt = f", attempt {run.attempt}" if run.attempt is not None else ""
    head = terminal(f"{run.stack} {run.title}")
    return f"{head}: {coloured(run.state, colour)}{attempt}, accepted {run.created:%Y-%m-%d %H:%M:%S}"


def coloured(state: str, colour: bool) -> str:
    return click.style(state, fg=_COLOURS.get(state.upper()), bold=True) if colour else state


def styled(line: str, start: int, state: str, colour: bool) -> str:
    """The line with its state in colour, where the state fits on it."""
    end = start + len(state)
    if not colour or line[start:end] != state:
        return line
    return line[:start] + coloured(state, True) + line[end:]


def problems_of(run: RunStatus) -> Iterator[str]:
    """Which rank failed first, and what was dropped, in lines without any control character of a script."""
    first_cause = find_cause(run)
    if first_cause is not None:
        yield terminal(first_cause.words)
    for one in (run.dropped or ())[:_MOST_DROPPED]:
        yield terminal(f"dropped: {one.pair}, {plural(one.packets, 'packet')}: {one.missing}")
    left = len(run.dropped or ()) - _MOST_DROPPED
    if left > 0:
        yield f"and packets of {plural(left, 'other pair')}"


def _row(node: NodeStatus, now: datetime) -> tuple[str, ...]:
    return str(node.rank), node.run.name, node.state, took(node, now), about(node)


def took(node: NodeStatus, now: datetime) -> str:
    if not node.run.started_at:
        return "-"
    start = datetime.fromisoformat(node.run.started_at)
    end = datetime.fromisoformat(node.run.finished_at) if node.run.finished_at else now
    return duration((end - start).total_seconds())


def about(node: NodeStatus) -> str:
    """Why the rank is in this state, and the progress that the training reports, or else draws as a bar."""
    status = node.launcher_status or {}
    return "; ".join(filter(None, (progress(status.get("progress") or status.get("bar")), why(node))))


def why(node: NodeStatus) -> str:
    """The same without the progress."""
    status = node.launcher_status or {}
    # The platform says that the launcher ended with 1; the launcher says why.
    ended = node.run.state == "FAILED" and status.get("state") in ("failed", "stopped")
    reason = reason_of(node)
    cause = (reason if ended or status.get("state") == "retrying" else "") or node.run.details or reason
    tries = f"try {status['tries']}" if (status.get("tries") or 0) > 1 else ""
    return "; ".join(filter(None, (tries, cause, total_words([read_lost(status)]))))


def as_json(
    runs: Iterable[RunStatus], machines: Sequence[MachineSeen] | None = (), ranking: Ranking | None = None
) -> str:
    """A list of runs, each with the machines of its job. `machines`: None where nobody may look.

    With a ranking they are in its order, and each has its metric.
    """
    if ranking is not None:
        return json_text([{**_plain(one.run, machines), "metric": one.metric} for one in ranking.runs])
    return json_text([_plain(run, machines) for run in runs])


def _plain(run: RunStatus, machines: Sequence[MachineSeen] | None) -> dict[str, Any]:
    return {
        "stack": run.stack,
        "job": run.job,
        "run": run.name,
        "attempt": run.attempt,
        "state": run.state,
        "accepted": run.created.isoformat(),
        "firstFailure": find_cause(run),
        "dropped": run.dropped,
        "nodes": [
            {
                "rank": node.rank,
                "node": node.run.name,
                "role": node.role,
                "id": node.run.id,
                "state": node.run.state,
                "details": node.run.details,
                "startedAt": node.run.started_at,
                "finishedAt": node.run.finished_at,
                "launcher": node.launcher_status,
            }
            for node in run.nodes
        ],
        "machines": None if machines is None else [_machine(one) for one in machines if one.job == run.job],
    }


def _machine(one: MachineSeen) -> dict[str, Any]:
    return {
        "node": one.node,
        "id": one.id,
        "state": one.state,
        "doing": one.doing,
        "reason": one.reason,
        "up": one.up,
        "since": one.since.isoformat() if one.up else None,
    }
