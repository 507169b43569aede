# SPDX-License-Identifier: Apache-2.0
"""What the ranks of runs print, merged in the order of time, each line with its rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from components.aws_dl1.client.logs import lines_after
from components.aws_dl1.client.queue import Queue
from components.aws_dl1.client.tickets import RunId, Ticket
from components.platform.calls import Call
from components.platform.status import NodeStatus, RunStatus
from components.s3.session import Session
from launcher.redraws import Lines


@dataclass
class LogMerger:
    """Lines of several nodes, each given once however often it is asked for."""

    session: Session
    call: Call
    ranks: frozenset[int] = frozenset()
    _after: dict[str, str | None] = field(default_factory=dict)
    _tickets: dict[str, Ticket | None] = field(default_factory=dict)
    _whole: Lines = field(default_factory=Lines)

    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        """What came since the last time, with prefixes."""
        lines: list[tuple[int, str, str]] = []
        for node in (node for run in runs for node in run.nodes if node.log is not None):
            if not self.ranks or node.rank in self.ranks:
                lines += self._of(node)
        for _, prefix, text in sorted(lines, key=lambda line: line[0]):
            yield from (f"{prefix}{whole}" for whole in self._whole.add(prefix, text))

    def unfinished(self) -> Iterator[str]:
        """The lines that still grow, as they stand."""
        return (f"{prefix}{text}" for prefix, text in self._whole.unfinished())

    def _of(self, node: NodeStatus) -> Iterator[tuple[int, str, str]]:
        ticket = self._ticket(node.run.id)
        if ticket is None:
            return
        for event, after in lines_after(self.session, self.call, ticket, node.run.name, self._after.get(node.run.id)):
            self._after[node.run.id] = after
            # The launcher marks its lines with the node already: that mark is not said twice.
            text = event.text.removeprefix(f"[{node.run.name}] ")
            yield event.time, f"[{node.rank} {node.run.name}] ", text

    def _ticket(self, run_id: str) -> Ticket | None:
        if run_id not in self._tickets:
            run = RunId.parse(run_id)
            read = Queue(self.session, self.call, run.cluster).ticket(run.number) if run else None
            self._tickets[run_id] = read
        return self._tickets[run_id]
