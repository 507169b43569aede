# SPDX-License-Identifier: Apache-2.0
"""What the ranks of runs print, each line with its rank. Logs of OpenPAI have no times, so rank follows rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from components.openpai.client import logs
from components.openpai.client.jobs import RunId
from components.openpai.client.logs import LogPlace
from components.openpai.client.runs import OpenPaiRunPlatform
from components.openpai.client.states import JobDetail
from components.platform.calls import Call
from components.platform.status import NodeStatus, RunStatus
from launcher.redraws import Lines, whole_lines


@dataclass
class LogMerger:
    """Lines of several nodes, each given once however often it is asked for."""

    platform: OpenPaiRunPlatform
    call: Call
    ranks: frozenset[int] = frozenset()
    _places: dict[str, LogPlace] = field(default_factory=dict)
    _whole: Lines = field(default_factory=Lines)
    # By the prefix of a node, the line that its log ends with so far.
    _ends: dict[str, str] = field(default_factory=dict)

    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        """What came since the last time, with prefixes."""
        for run in runs:
            nodes = [node for node in run.nodes if node.log is not None and (not self.ranks or node.rank in self.ranks)]
            main = RunId.parse(nodes[0].run.id) if nodes else None
            content = self.platform.job(self.call, main.user, main.job) if main else None
            if content is not None:
                detail = JobDetail(content)
                for node in nodes:
                    yield from self._of(node, detail)

    def unfinished(self) -> Iterator[str]:
        """The lines that still grow, as they stand."""
        for prefix, text in self._whole.unfinished():
            yield f"{prefix}{text}"
        for prefix, end in self._ends.items():
            yield from (f"{prefix}{text}" for text in whole_lines([end]))

    def _of(self, node: NodeStatus, detail: JobDetail) -> Iterator[str]:
        run = RunId.parse(node.run.id)
        if run is None:
            return
        begin, read = logs.attempts_of(run, detail), self._places.get(node.run.id)
        if read is not None and begin is not None and begin.attempts != read.attempts:
            # What the attempt before printed last. Its log stays when the task is tried again.
            yield from self._lines(node, run, read)
            yield from self._end(node)
        place = read if read is not None and begin is not None and begin.attempts == read.attempts else begin
        if place is not None:
            yield from self._lines(node, run, place)

    def _lines(self, node: NodeStatus, run: RunId, place: LogPlace) -> Iterator[str]:
        lines, rest, self._places[node.run.id] = logs.text_after(self.platform.session, self.call, run, place)
        prefix, mark = _prefix(node), _mark(node)
        self._ends.pop(prefix, None)
        for line in lines:
            yield from (f"{prefix}{text}" for text in self._whole.add(prefix, line.removeprefix(mark)))
        if rest:
            self._ends[prefix] = rest.removeprefix(mark)

    def _end(self, node: NodeStatus) -> Iterator[str]:
        """The last line of an attempt that is over."""
        prefix = _prefix(node)
        yield from (f"{prefix}{text}" for text in self._whole.add(prefix, self._ends.pop(prefix, "")) if text)


def _prefix(node: NodeStatus) -> str:
    return f"[{node.rank} {node.run.name}] "


def _mark(node: NodeStatus) -> str:
    """The launcher marks its lines with the node already: that mark is not said twice."""
    return f"[{node.run.name}] "
