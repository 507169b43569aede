# SPDX-License-Identifier: Apache-2.0
"""Runs as tables: one line a run, and runs by a metric with the best one first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from components.plan.show import table
from components.platform.status import NodeStatus, RunStatus, duration, find_cause, progress
from launcher.escaping import terminal
from provider.runs.lost import read_lost, total_words
from trainyard.cli.runs_text import styled, why
from trainyard.runs.ranking import RESULT, RankedRun, Ranking

_HEAD = ("run", "state", "nodes", "for", "attempt", "progress")
# So much of what a run says of itself fits beside its other columns, where no terminal says how wide it is.
_LONGEST_WORDS = 160


def lines_text(runs: Sequence[RunStatus], now: datetime, colour: bool = False, width: int | None = None) -> str:
    """One line a run; `width` cuts what a run says of itself. The stack is a column where there are several."""
    several = len({run.stack for run in runs}) > 1
    rows = [(*([run.stack] if several else []), *_row(run, now)) for run in runs]
    head = (*(["stack"] if several else []), *_HEAD)
    return "\n".join(_in_columns(head, rows, [run.state for run in runs], colour, width))


def ranking_text(ranking: Ranking, now: datetime, colour: bool = False, width: int | None = None) -> str:
    """The runs that have the metric in order, then those without it by name."""
    placed = [one for one in ranking.runs if one.metric is not None]
    order, other = ("highest", "--lowest") if ranking.highest else ("lowest", "--highest")
    lines = [f"by {terminal(ranking.by)}, {order} first ({other} turns it around)"]
    rows = [(str(place), *_ranked_row(one, now)) for place, one in enumerate(placed, 1)]
    head = ("place", ranking.by, "of", "run", "state", "for", "attempt")
    lines += _in_columns(head, rows, [one.run.state for one in placed], colour, width)
    lines += [f"no {terminal(ranking.by)}: {terminal(_missing(one.run))}" for one in ranking.runs if not one.metric]
    return "\n".join(lines)


def about_run(run: RunStatus) -> str:
    """What the run's nodes say, in words that fit into one line: progress, and why it failed or does not begin."""
    reports = [progress(status.get("progress") or status.get("bar")) for status in map(_status, run.nodes)]
    shown = next(filter(None, reports), "")
    if run.state == "SUCCEEDED":
        return "; ".join(filter(None, (shown, total_words([read_lost(node.launcher_status) for node in run.nodes]))))
    cause = find_cause(run)
    # The rank that failed says more than those which were ended with it.
    nodes = sorted(run.nodes, key=lambda node: node.run.state != "FAILED")
    reason = cause.words if cause else next(filter(None, map(why, nodes)), "")
    return "; ".join(filter(None, (shown, reason if run.over or not shown else "")))


def took(run: RunStatus, now: datetime) -> str:
    """From the first node's beginning to the last one's end, or until now."""
    began = [node.run.started_at for node in run.nodes if node.run.started_at]
    if not began:
        return "-"
    ended = [node.run.finished_at for node in run.nodes if node.run.finished_at]
    end = max(map(datetime.fromisoformat, ended)) if run.over and ended else now
    return duration((end - min(map(datetime.fromisoformat, began))).total_seconds())


def _row(run: RunStatus, now: datetime) -> tuple[str, ...]:
    words = about_run(run)
    words = words if len(words) <= _LONGEST_WORDS else words[: _LONGEST_WORDS - 1] + "…"
    return run.title, run.state, _nodes(run), took(run, now), _attempt(run), words


def _ranked_row(one: RankedRun, now: datetime) -> tuple[str, ...]:
    run, metric = one.run, one.metric
    if metric is None:
        raise ValueError("a run without the metric has no place")
    value, source = f"{metric.value:.6g}", metric.source if metric.source == RESULT else "last progress"
    return value, source, run.title, run.state, took(run, now), _attempt(run)


def _missing(run: RunStatus) -> str:
    words = about_run(run)
    return f"{run.title}, {run.state}" + (f": {words[:_LONGEST_WORDS]}" if words else "")


def _nodes(run: RunStatus) -> str:
    """How many nodes, and how many in which state where that is not the run's."""
    states = Counter(node.state for node in run.nodes)
    if set(states) <= {run.state}:
        return str(len(run.nodes))
    if len(states) == 1:
        return f"{len(run.nodes)} {next(iter(states))}"
    return f"{len(run.nodes)}: " + ", ".join(f"{count} {state}" for state, count in states.items())


def _attempt(run: RunStatus) -> str:
    return "-" if run.attempt is None else str(run.attempt)


def _status(node: NodeStatus) -> dict[str, object]:
    return dict(node.launcher_status or {})


def _in_columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], states: Sequence[str], colour: bool, width: int | None
) -> Iterator[str]:
    """Aligned lines. A line that is wider than the terminal is cut, so that each run stays one line."""
    if not rows:
        return
    cells = [tuple(map(terminal, row)) for row in (head, *rows)]
    place = head.index("state")
    start = sum(max(len(row[column]) for row in cells) + 2 for column in range(place))
    for line, state in zip(table(cells, indent=""), ["", *map(terminal, states)], strict=True):
        cut = line if width is None or len(line) <= width else line[: width - 1] + "…"
        yield styled(cut, start, state, colour and bool(state))
