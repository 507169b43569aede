# SPDX-License-Identifier: Apache-2.0
"""Runs as text, as tables (one line a run, or sorted by a metric), and as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import click

from components.plan.show import aligned_rows, json_text
from components.platform.causes import find_cause, reason_of
from components.platform.status import MachineSeen, NodeStatus, RunStatus, duration_text, progress_text
from components.platform.traffic import DroppedResult
from launcher.escaping import terminal_line
from launcher.exits import CONFIGURATION
from provider.runs.lost import total_words
from schemas.name_suggestions import count_noun
from trainyard.runs.ranking import RESULT, Ranking
from trainyard.why.judge import known_cause

_COLOURS = {"SUCCEEDED": "green", "FAILED": "red", "NEEDS_ATTENTION": "red", "CANCELED": "yellow"}
# Dropped connections shown per run. JSON has all of them.
MOST_DROPPED = 10
# A launcher that may not use the bucket, or cannot read what it is to start, can only say so in its log.
_REFUSED_AT_ONCE = re.compile(rf"\bcode {CONFIGURATION}\b")
_HEAD = ("run", "state", "nodes", "for", "attempt", "progress")
# The longest status beside the other columns, if the width of the terminal is unknown.
_LONGEST_WORDS = 160


def run_blocks_text(runs: Sequence[RunStatus], now: datetime, colour: bool = False) -> str:
    """For each run: a heading, a row for each rank, and its problems."""
    lines: list[str] = []
    for run in runs:
        lines.append(head_of(run, colour))
        rows = [("rank", "node", "state", "for", "")]
        rows += [
            (str(node.rank), node.run.name, node.state, node_took(node, now), about_node(node)) for node in run.nodes
        ]
        lines += [*map(terminal_line, aligned_rows(rows)), *(f"  {line}" for line in problems_of(run))]
    return "\n".join(lines)


def machines_text(machines: Sequence[MachineSeen], now: datetime) -> str:
    """The machines that stay between runs, and how long they have been up."""
    rows = [
        (
            machine.job,
            machine.node,
            machine.id,
            machine.doing or machine.state,
            f"up for {duration_text((now - machine.since).total_seconds())}" if machine.up else "not up",
            machine.reason,
        )
        for machine in machines
    ]
    up = sum(machine.up for machine in machines)
    return "\n".join([f"machines, {up} of {len(rows)} up:", *map(terminal_line, aligned_rows(rows))]) if rows else ""


def head_of(run: RunStatus, colour: bool) -> str:
    attempt = f", attempt {run.attempt}" if run.attempt is not None else ""
    head = terminal_line(f"{run.stack} {run.title}")
    return f"{head}: {coloured_state(run.state, colour)}{attempt}, accepted {run.created:%Y-%m-%d %H:%M:%S}"


def coloured_state(state: str, colour: bool) -> str:
    return click.style(state, fg=_COLOURS.get(state.upper()), bold=True) if colour else state


def with_coloured_state(line: str, start: int, state: str, colour: bool) -> str:
    """The line with its state in colour, if the state was not cut off."""
    end = start + len(state)
    if not colour or line[start:end] != state:
        return line
    return line[:start] + coloured_state(state, True) + line[end:]


def problems_of(run: RunStatus) -> Iterator[str]:
    """The cause as far as it is known, and dropped connections, escaped for a terminal."""
    if cause := known_cause(run):
        yield terminal_line(cause)
    yield from dropped_lines(run.dropped or ())


def dropped_lines(dropped: Sequence[DroppedResult]) -> Iterator[str]:
    """The first pairs whose packets were dropped, and the number of the others, escaped for a terminal."""
    yield from map(dropped_text, dropped[:MOST_DROPPED])
    if (left := len(dropped) - MOST_DROPPED) > 0:
        yield f"and packets of {count_noun(left, 'other pair')}"


def dropped_text(dropped: DroppedResult) -> str:
    """One pair and port. Escaped for a terminal."""
    return terminal_line(f"dropped: {dropped.pair}, {count_noun(dropped.packets, 'packet')}: {dropped.missing}")


def node_took(node: NodeStatus, now: datetime) -> str:
    if not node.run.started_at:
        return "-"
    start = datetime.fromisoformat(node.run.started_at)
    end = datetime.fromisoformat(node.run.finished_at) if node.run.finished_at else now
    return duration_text((end - start).total_seconds())


def about_node(node: NodeStatus) -> str:
    """Why the rank is in this state, and its progress: reported, or drawn as a bar."""
    status = node.launcher_status or {}
    return "; ".join(filter(None, (progress_text(status.get("progress") or status.get("bar")), reason_of_state(node))))


def reason_of_state(node: NodeStatus) -> str:
    """Why the rank is in this state."""
    status = node.launcher_status or {}
    # The platform knows only the exit code of the launcher. The launcher knows why.
    ended = node.run.state == "FAILED" and status.get("state") in ("failed", "stopped")
    reason = reason_of(node)
    cause = (reason if ended or status.get("state") == "retrying" else "") or node.run.details or reason
    if not status and node.run.state == "FAILED" and _REFUSED_AT_ONCE.search(cause):
        cause += ": its launcher could write no status; its last lines say why"
    tries = f"try {status['tries']}" if (status.get("tries") or 0) > 1 else ""
    return "; ".join(filter(None, (tries, cause, total_words([status]))))


def runs_json(
    runs: Iterable[RunStatus], machines: Sequence[MachineSeen] | None = (), ranking: Ranking | None = None
) -> str:
    """A list of runs, each with the machines of its job. `machines` None: the caller may not see them.

    With a ranking, the runs are in its order, and each has its metric.
    """
    if ranking is not None:
        return json_text([{**_run_json(ranked.run, machines), "metric": ranked.metric} for ranked in ranking.runs])
    return json_text([_run_json(run, machines) for run in runs])


def _run_json(run: RunStatus, machines: Sequence[MachineSeen] | None) -> dict[str, Any]:
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
        "machines": None
        if machines is None
        else [
            {
                "node": machine.node,
                "id": machine.id,
                "state": machine.state,
                "doing": machine.doing,
                "reason": machine.reason,
                "up": machine.up,
                "since": machine.since.isoformat() if machine.up else None,
            }
            for machine in machines
            if machine.job == run.job
        ],
    }


def lines_text(runs: Sequence[RunStatus], now: datetime, colour: bool = False, width: int | None = None) -> str:
    """One line for each run, cut at `width`. With several stacks, the stack is a column."""
    several = len({run.stack for run in runs}) > 1
    rows = []
    for run in runs:
        words = about_run(run)
        words = words if len(words) <= _LONGEST_WORDS else words[: _LONGEST_WORDS - 1] + "…"
        cells = (run.title, run.state, _count_nodes(run), run_took(run, now), _attempt_text(run), words)
        rows.append((run.stack, *cells) if several else cells)
    head = ("stack", *_HEAD) if several else _HEAD
    return "\n".join(_in_columns(head, rows, [run.state for run in runs], colour, width))


def ranking_text(ranking: Ranking, now: datetime, colour: bool = False, width: int | None = None) -> str:
    """The runs in the order of the metric, then the runs without it."""
    order, other = ("highest", "--lowest") if ranking.highest else ("lowest", "--highest")
    rows: list[tuple[str, ...]] = []
    states: list[str] = []
    rest: list[str] = []
    for ranked in ranking.runs:
        run, metric = ranked.run, ranked.metric
        if metric is None:
            words = about_run(run)[:_LONGEST_WORDS]
            about = f"{run.title}, {run.state}" + (f": {words}" if words else "")
            rest.append(f"no {terminal_line(ranking.by)}: {terminal_line(about)}")
            continue
        source = metric.source if metric.source == RESULT else "last progress"
        cells = (f"{metric.value:.6g}", source, run.title, run.state, run_took(run, now), _attempt_text(run))
        rows.append((str(len(rows) + 1), *cells))
        states.append(run.state)
    head = ("place", ranking.by, "of", "run", "state", "for", "attempt")
    title = f"by {terminal_line(ranking.by)}, {order} first ({other} turns it around)"
    return "\n".join([title, *_in_columns(head, rows, states, colour, width), *rest])


def about_run(run: RunStatus) -> str:
    """The status of a run in one line: progress, and why it failed or does not begin."""
    statuses = [node.launcher_status or {} for node in run.nodes]
    shown = next(filter(None, (progress_text(status.get("progress") or status.get("bar")) for status in statuses)), "")
    if run.state == "SUCCEEDED":
        return "; ".join(filter(None, (shown, total_words(node.launcher_status for node in run.nodes))))
    return "; ".join(filter(None, (shown, reason_of_run(run) if run.over or not shown else "")))


def reason_of_run(run: RunStatus) -> str:
    """Why a run failed or does not begin."""
    # A rank that failed knows more than the ranks that were ended because of it.
    nodes = sorted(run.nodes, key=lambda node: node.run.state != "FAILED")
    return known_cause(run) or next(filter(None, map(reason_of_state, nodes)), "")


def run_took(run: RunStatus, now: datetime) -> str:
    """The time from the start of the first node to the end of the last one, or until now."""
    began = [node.run.started_at for node in run.nodes if node.run.started_at]
    if not began:
        return "-"
    ended = [node.run.finished_at for node in run.nodes if node.run.finished_at]
    end = max(map(datetime.fromisoformat, ended)) if run.over and ended else now
    return duration_text((end - min(map(datetime.fromisoformat, began))).total_seconds())


def _count_nodes(run: RunStatus) -> str:
    """The number of nodes, and the number in each state, if that is not the state of the run."""
    states = Counter(node.state for node in run.nodes)
    if set(states) <= {run.state}:
        return str(len(run.nodes))
    if len(states) == 1:
        return f"{len(run.nodes)} {next(iter(states))}"
    return f"{len(run.nodes)}: " + ", ".join(f"{count} {state}" for state, count in states.items())


def _attempt_text(run: RunStatus) -> str:
    return "-" if run.attempt is None else str(run.attempt)


def _in_columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], states: Sequence[str], colour: bool, width: int | None
) -> Iterator[str]:
    """Aligned lines. A line that is wider than the terminal is cut, so that each run stays one line."""
    if not rows:
        return
    cells = [tuple(map(terminal_line, row)) for row in (head, *rows)]
    place = head.index("state")
    start = sum(max(len(row[column]) for row in cells) + 2 for column in range(place))
    for line, state in zip(aligned_rows(cells, indent=""), ["", *map(terminal_line, states)], strict=True):
        cut = line if width is None or len(line) <= width else line[: width - 1] + "…"
        yield with_coloured_state(cut, start, state, colour and bool(state))
