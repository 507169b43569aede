# SPDX-License-Identifier: Apache-2.0
"""Runs as text and JSON, and a screen that is drawn over itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import click

from cli.out import draw, say
from components.plan.show import json_text, table
from launcher.escaping import terminal
from runstatus.causes import find_cause
from runstatus.seen import NodeStatus, RunStatus
from runstatus.words import duration, progress
from schemas.names import plural

_COLOURS = {"SUCCEEDED": "green", "FAILED": "red", "NEEDS_ATTENTION": "red", "CANCELED": "yellow"}
# So much of what was dropped is for people; JSON has the rest.
_MOST_DROPPED = 10


def text(runs: Sequence[RunStatus], now: datetime, colour: bool = False) -> str:
    """A head for each run, a row for each of its ranks, and what went wrong."""
    lines: list[str] = []
    for run in runs:
        state = click.style(run.state, fg=_COLOURS.get(run.state), bold=True) if colour else run.state
        attempt = f", attempt {run.attempt}" if run.attempt is not None else ""
        head = terminal(f"{run.stack} {run.title}")
        lines.append(f"{head}: {state}{attempt}, accepted {run.created:%Y-%m-%d %H:%M:%S}")
        rows = [("rank", "node", "state", "for", ""), *(_row(node, now) for node in run.nodes)]
        lines += [*map(terminal, table(rows)), *(f"  {line}" for line in problems_of(run))]
    return "\n".join(lines)


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
    return str(node.rank), node.run.name, node.state, _took(node, now), about(node)


def _took(node: NodeStatus, now: datetime) -> str:
    if not node.run.started_at:
        return "-"
    start = datetime.fromisoformat(node.run.started_at)
    end = datetime.fromisoformat(node.run.finished_at) if node.run.finished_at else now
    return duration((end - start).total_seconds())


def about(node: NodeStatus) -> str:
    """Why the rank is in this state, and the progress that the training reports."""
    status = node.launcher_status or {}
    # The platform says that the launcher ended with 1; the launcher says why.
    ended = node.run.state == "FAILED" and status.get("state") in ("failed", "stopped")
    reason = str(status.get("reason") or "")
    why = (reason if ended or status.get("state") == "retrying" else "") or node.run.details or reason
    tries = f"try {status['tries']}" if (status.get("tries") or 0) > 1 else ""
    return "; ".join(part for part in (progress(status.get("progress")), tries, why) if part)


def as_json(runs: Iterable[RunStatus]) -> str:
    return json_text([_plain(run) for run in runs])


def _plain(run: RunStatus) -> dict[str, Any]:
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
    }


@dataclass
class Screen:
    """On a terminal each table is drawn over the one before; elsewhere each change is a line."""

    terminal: bool
    _lines: int = 0
    _printed: dict[tuple[str, str, int], str] = field(default_factory=dict)
    _printed_problems: set[tuple[str, str, str]] = field(default_factory=set)

    def show(self, runs: Sequence[RunStatus], now: datetime) -> None:
        if self.terminal:
            self._draw(text(runs, now, colour=False).split("\n"))
            return
        for line in self._changes(runs):
            say(f"{now:%H:%M:%S} {line}")

    def _draw(self, lines: list[str]) -> None:
        width, height = shutil.get_terminal_size()
        # A line that wraps, or more lines than there are, could not be drawn over.
        shown = [line[: width - 1] for line in lines[: height - 1]]
        draw(shown, over=self._lines)
        self._lines = len(shown)

    def _changes(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        for run in runs:
            for node in run.nodes:
                key, state = (run.stack, run.title, node.rank), ": ".join(filter(None, (node.state, about(node))))
                if self._printed.get(key) != state:
                    self._printed[key] = state
                    yield terminal(f"{run.title} rank {node.rank} {node.run.name}: {state}")
            for line in problems_of(run) if run.over else ():
                if (run.stack, run.title, line) not in self._printed_problems:
                    self._printed_problems.add((run.stack, run.title, line))
                    yield f"{terminal(run.title)}: {line}"
