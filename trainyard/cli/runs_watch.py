# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs watch`: a screen that is redrawn in place, with a curve of what each rank reports."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TextIO

import click

from components.platform.progress import ProgressPoint, metric_names, thin_points
from components.platform.status import ConnectionsSeen, NodeStatus, RunStatus
from launcher.escaping import terminal_line
from schemas.name_suggestions import count_noun
from trainyard.cli.out import redraw_lines, say
from trainyard.cli.run_news import DroppedNews
from trainyard.cli.runs_text import about_node, head_of, node_took, problems_of, reason_of_state, with_coloured_state
from trainyard.runs.run_looks import ProgressHistory

BLOCKS, ASCII = "▁▂▃▄▅▆▇█", "_.-:=+*#"
GAP = " "
_COLUMNS = ("rank", "node", "state", "for", "step")
_CURVE_WIDTH = 16
# The width of the curve, and the columns to leave out. The first layout with room for the last column is used.
_LAYOUTS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (_CURVE_WIDTH, ()),
    (_CURVE_WIDTH, ("node",)),
    (_CURVE_WIDTH, ("node", "for")),
    (8, ("node", "for")),
    (8, ("node", "for", "step")),
)
_LAST_WIDTH = 16
_METRICS, _LONGEST_NAME = 3, 24
Series = Mapping[int, Sequence[ProgressPoint]]


def levels_of(stream: TextIO, environment: Mapping[str, str] = os.environ) -> str:
    """The characters of a curve that the terminal can show, from the lowest to the highest."""
    encoding = (getattr(stream, "encoding", "") or "").lower().replace("-", "")
    return BLOCKS if encoding == "utf8" and environment.get("TERM") != "dumb" else ASCII


def draw_sparkline(values: Sequence[float | None], width: int, levels: str) -> str:
    """At most `width` characters, with a gap for each missing number."""
    chosen = thin_points(values, width)
    numbers = [value for value in chosen if value is not None]
    if not numbers:
        return ""
    # Halved, because the difference of two large numbers may overflow.
    low, high = min(numbers) / 2, max(numbers) / 2
    top = len(levels) - 1

    def letter(value: float | None) -> str:
        if value is None:
            return GAP
        return levels[round((value / 2 - low) / (high - low) * top) if high > low else top // 2]

    return "".join(map(letter, chosen))


@dataclass
class Screen:
    """On a terminal, each table replaces the one before. Elsewhere, each change is a line.

    A terminal that cannot move its cursor (`TERM=dumb`) gets lines too, each with the curve so far.
    """

    history: ProgressHistory
    is_terminal: bool
    moves: bool = True
    colour: bool = False
    levels: str = ASCII
    _lines: int = 0
    _seen: dict[str, ConnectionsSeen] = field(default_factory=dict)
    _printed: dict[tuple[str, str, int], str] = field(default_factory=dict)
    _news: DroppedNews = field(default_factory=DroppedNews)
    _printed_problems: set[tuple[str, str, str]] = field(default_factory=set)

    def show(self, runs: Sequence[RunStatus], now: datetime) -> None:
        if self.is_terminal and self.moves:
            self._draw([line for run in runs for line in self._run(run, now)])
            return
        for line in self._changes(runs, now):
            say(f"{now:%H:%M:%S} {line}")

    def _draw(self, lines: list[str]) -> None:
        height = shutil.get_terminal_size().lines
        # Lines beyond the screen cannot be redrawn.
        shown = lines[: height - 1]
        redraw_lines(shown, over=self._lines)
        self._lines = len(shown)

    def _run(self, run: RunStatus, now: datetime) -> Iterator[str]:
        """No line is wider than the terminal: a line that wraps cannot be redrawn."""
        width = shutil.get_terminal_size().columns - 1
        head = head_of(run, colour=False)
        yield with_coloured_state(head[:width], len(head.partition(": ")[0]) + 2, run.state, self.colour)
        yield from self._table(run, now, width)
        yield self._connections(run)[:width]
        for line in problems_of(run):
            yield click.style(f"  {line}"[:width], fg="red") if self.colour else f"  {line}"[:width]

    def _table(self, run: RunStatus, now: datetime, width: int) -> Iterator[str]:
        series = self.history.observe(run, now.timestamp())
        names = metric_names([point for points in series.values() for point in points])
        for curve_width, gone in _LAYOUTS:
            head = (*_COLUMNS, terminal_line(names[0] if names else "")[:curve_width], "")
            rows = [self._row(node, now, series.get(node.rank, ()), names, curve_width) for node in run.nodes]
            lines, starts = _align_columns([head, *rows], gone)
            if starts[-1] + min(_LAST_WIDTH, max(len(row[-1]) for row in rows)) <= width:
                break
        state = [name for name in _COLUMNS if name not in gone].index("state")
        yield lines[0][:width].rstrip()
        for node, line in zip(run.nodes, lines[1:], strict=True):
            yield with_coloured_state(line[:width].rstrip(), starts[state], terminal_line(node.state), self.colour)

    def _row(
        self, node: NodeStatus, now: datetime, points: Sequence[ProgressPoint], names: Sequence[str], curve_width: int
    ) -> tuple[str, ...]:
        cells = (str(node.rank), node.run.name, node.state, node_took(node, now))
        if not points:
            return (*map(terminal_line, (*cells, "", "", about_node(node))),)
        last, curve = points[-1], self._curve(points, names, curve_width)
        metrics = [
            f"{name[:_LONGEST_NAME]} {_format_number(last.metrics[name])}" for name in names if name in last.metrics
        ][:_METRICS]
        rest = "; ".join(filter(None, (", ".join(metrics), reason_of_state(node))))
        total = f"/{_format_number(last.total)}" if last.total is not None else ""
        step = f"{_format_number(last.step)}{total}" if last.step is not None else ""
        return (*map(terminal_line, (*cells, step)), curve.ljust(curve_width), terminal_line(rest))

    def _curve(self, points: Sequence[ProgressPoint], names: Sequence[str], width: int) -> str:
        """The curve of the rank's first metric, or of its steps."""
        own = next((name for name in names if any(name in point.metrics for point in points)), None)
        values = [point.step if own is None else point.metrics.get(own) for point in points]
        return draw_sparkline(values, width, self.levels)

    def _connections(self, run: RunStatus) -> str:
        start = run.nodes[0].run.id
        if run.connections is not None:  # not read again once the run has succeeded
            self._seen[start] = run.connections
        seen = self._seen.get(start)
        if seen is None:
            return "  connections: not known here"
        packets = sum(dropped.packets for dropped in seen.dropped)
        dropped = f"{count_noun(packets, 'packet')} dropped" if packets else "nothing dropped"
        if seen.count is None:
            return f"  {dropped}, by the subnet's flow log of some minutes ago"
        rules = f"{count_noun(seen.used_rules, 'rule')} used, {seen.unused_rules} not"
        return f"  {count_noun(seen.count, 'connection')}, {rules}; {dropped}"

    def _changes(self, runs: Iterable[RunStatus], now: datetime) -> Iterator[str]:
        for run in runs:
            for node in run.nodes:
                key, state = (run.stack, run.title, node.rank), ": ".join(filter(None, (node.state, about_node(node))))
                if self._printed.get(key) != state:
                    self._printed[key] = state
                    yield terminal_line(f"{run.title} rank {node.rank} {node.run.name}: {state}") + self._aside(
                        run, node, now
                    )
            if not run.over:
                yield from self._news.new_lines(run)
            for line in problems_of(run) if run.over else ():
                if (run.stack, run.title, line) not in self._printed_problems:
                    self._printed_problems.add((run.stack, run.title, line))
                    yield f"{terminal_line(run.title)}: {line}"

    def _aside(self, run: RunStatus, node: NodeStatus, now: datetime) -> str:
        if not self.is_terminal:
            return ""
        points = self.history.observe(run, now.timestamp()).get(node.rank, ())
        curve = self._curve(points, metric_names(points), _CURVE_WIDTH)
        return f"  {curve}" if curve else ""


def _align_columns(rows: Sequence[Sequence[str]], gone: Sequence[str]) -> tuple[list[str], list[int]]:
    """Lines of aligned columns, and where each column starts. `gone` are the columns that are left out."""
    shown = [place for place in range(len(rows[0])) if place >= len(_COLUMNS) or _COLUMNS[place] not in gone]
    widths = [max(len(row[place]) for row in rows) for place in shown[:-1]]
    starts = [2 + sum(widths[:number]) + 2 * number for number in range(len(shown))]
    lines = [
        "  " + "  ".join(row[place].ljust(size) for place, size in zip(shown, [*widths, 0], strict=True))
        for row in rows
    ]
    return lines, starts


def _format_number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
