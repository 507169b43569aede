# SPDX-License-Identifier: Apache-2.0
"""What the ranks of runs print, merged in the order of time, each line with its rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from components.oci.client.logs import LogLine, lines_since
from components.oci.client.session import Session
from components.platform.calls import Call
from components.platform.status import NodeStatus, RunStatus
from launcher.redraws import Lines

# A line may reach the search so much later than its own time says.
_LATE = timedelta(seconds=90)


@dataclass
class LogMerger:
    """Lines of several job runs, each given once however often it is asked for."""

    session: Session
    call: Call
    ranks: frozenset[int] = frozenset()
    _until: datetime | None = None
    _given: set[str] = field(default_factory=set)
    _whole: Lines = field(default_factory=Lines)

    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        """What came since the last time, with prefixes."""
        named: dict[tuple[str, str], str] = {}
        places: dict[str, dict[str, None]] = {}
        oldest = datetime.now(UTC)
        for run in runs:
            oldest = min(oldest, run.created)
            for node in run.nodes:
                if node.log is not None:
                    named |= dict.fromkeys(_keys(run, node), _prefix(node))
                    places.setdefault(node.log, {})[node.run.id] = None
        since, self._until = self._until or oldest - _LATE, datetime.now(UTC)
        lines: list[LogLine] = []
        for place, sources in places.items():
            lines += lines_since(self.session, self.call, place, list(sources), since - _LATE)
        for line in sorted(lines, key=lambda line: line.time):
            if line.id not in self._given:
                self._given.add(line.id)
                if self._is_selected(line, named):
                    prefix, text = split_prefix(line, named)
                    yield from (f"{prefix}{whole}" for whole in self._whole.add(prefix, text))

    def unfinished(self) -> Iterator[str]:
        """The lines that still grow, as they stand."""
        return (f"{prefix}{text}" for prefix, text in self._whole.unfinished())

    def _is_selected(self, line: LogLine, named: Mapping[tuple[str, str], str]) -> bool:
        if not self.ranks:
            return True
        prefix = _of(line, named)
        return any(prefix.startswith(f"{rank} ") for rank in self.ranks)


def _keys(run: RunStatus, node: NodeStatus) -> list[tuple[str, str]]:
    """How a line names its node: by its job run, or in node groups by the group and rank beside it."""
    shared = len({one.run.id for one in run.nodes}) < len(run.nodes)
    return [(node.run.id, f"{node.role}/{node.rank}")] if shared else [(node.run.id, "")]


def _prefix(node: NodeStatus) -> str:
    return f"{node.rank} {node.run.name}"


def _of(line: LogLine, named: Mapping[tuple[str, str], str]) -> str:
    return named.get((line.source, "")) or named.get((line.source, line.subject)) or line.subject or "?"


def split_prefix(line: LogLine, named: Mapping[tuple[str, str], str]) -> tuple[str, str]:
    """A line's node, and its text. The launcher marks its lines with the node already: that mark is not said twice."""
    prefix = _of(line, named)
    return f"[{prefix}] ", line.text.removeprefix(f"[{prefix.partition(' ')[2]}] ")
