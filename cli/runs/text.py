# SPDX-License-Identifier: Apache-2.0
"""Runs as text and JSON, and a screen that is drawn over itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import click

from cli.render import printable
from cli.runs.seen import NodeSeen, RunSeen
from components.plan.show import table

_COLOURS = {"SUCCEEDED": "green", "FAILED": "red", "NEEDS_ATTENTION": "red", "CANCELED": "yellow"}
_UP, _ERASE_BELOW = "\x1b[{}F", "\x1b[J"


def text(runs: Sequence[RunSeen], now: datetime, colour: bool = False) -> str:
    """A head for each run, a row for each of its ranks."""
    lines: list[str] = []
    for run in runs:
        state = click.style(run.state, fg=_COLOURS.get(run.state), bold=True) if colour else run.state
        attempt = f", attempt {run.attempt}" if run.attempt is not None else ""
        lines.append(f"{run.stack} {run.title}: {state}{attempt}, accepted {run.created:%Y-%m-%d %H:%M:%S}")
        rows = [("rank", "node", "state", "for", ""), *(_row(node, now) for node in run.nodes)]
        lines += table(rows)
    return "\n".join(printable(line) if not colour else line for line in lines)


def _row(node: NodeSeen, now: datetime) -> tuple[str, ...]:
    return str(node.rank), node.run.name, node.state, _took(node, now), about(node)


def _took(node: NodeSeen, now: datetime) -> str:
    if not node.run.started_at:
        return "-"
    start = datetime.fromisoformat(node.run.started_at)
    end = datetime.fromisoformat(node.run.finished_at) if node.run.finished_at else now
    return duration((end - start).total_seconds())


def duration(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def about(node: NodeSeen) -> str:
    """Why it is as it is, and how far the training says it has come."""
    told = node.told or {}
    why = node.run.details or str(told.get("reason") or "")
    tries = f"try {told['tries']}" if int(told.get("tries") or 0) > 1 else ""
    return "; ".join(part for part in (progress(told.get("progress")), tries, why) if part)


def progress(told: Any) -> str:
    if isinstance(told, Mapping):
        return ", ".join(f"{key} {_short(value)}" for key, value in told.items())
    return str(told) if told else ""


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def as_json(runs: Iterable[RunSeen]) -> str:
    return json.dumps([_plain(run) for run in runs], indent=2)


def _plain(run: RunSeen) -> dict[str, Any]:
    return {
        "stack": run.stack,
        "job": run.job,
        "run": run.name,
        "attempt": run.attempt,
        "state": run.state,
        "accepted": run.created.isoformat(),
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
                "launcher": node.told,
            }
            for node in run.nodes
        ],
    }


@dataclass
class Screen:
    """On a terminal the table, drawn over the one before; elsewhere a line for each change."""

    terminal: bool
    _lines: int = 0
    _known: dict[tuple[str, str, int], str] = field(default_factory=dict)

    def show(self, runs: Sequence[RunSeen], now: datetime) -> None:
        if self.terminal:
            self._draw(text(runs, now, colour=False).split("\n"))
            return
        for line in self._changes(runs):
            click.echo(f"{now:%H:%M:%S} {line}")

    def _draw(self, lines: list[str]) -> None:
        width, height = shutil.get_terminal_size()
        # A line that wraps, or more lines than there are, could not be drawn over.
        shown = [line[: width - 1] for line in lines[: height - 1]]
        back = _UP.format(self._lines) if self._lines else ""
        click.echo(back + _ERASE_BELOW + "\n".join(shown), color=True)
        self._lines = len(shown)

    def _changes(self, runs: Iterable[RunSeen]) -> Iterator[str]:
        for run in runs:
            for node in run.nodes:
                key, said = (run.stack, run.title, node.rank), ": ".join(filter(None, (node.state, about(node))))
                if self._known.get(key) != said:
                    self._known[key] = said
                    yield printable(f"{run.title} rank {node.rank} {node.run.name}: {said}")
