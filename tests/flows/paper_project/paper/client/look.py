# SPDX-License-Identifier: Apache-2.0
"""Runs on a desk, for `trainyard runs` and `trainyard run`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from components.paper.client.runs import PaperRuns

from components.platform.calls import Call
from components.platform.client import RunReader
from components.platform.runs import NodeRun, liked_by
from components.platform.status import NodeStatus, RunStatus, WantedRuns, run_key
from components.platform.tries import PlannedTry, ReadyTry, TryError


@dataclass
class Looker(RunReader):
    runs: PaperRuns
    wanted: WantedRuns

    def look(self, call: Call, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        found = [(run, nodes) for run, nodes in self.runs.runs() if self.wanted.includes(run["tags"])]
        chosen = found if history else list({run_key(run["tags"]): (run, nodes) for run, nodes in found}.values())
        return [_status(run, nodes) for run, nodes in chosen]


@dataclass
class Merger:
    """The new lines of logs. Each is returned only once."""

    runs: PaperRuns
    ranks: frozenset[int]
    _given: dict[str, int] = field(default_factory=dict)

    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        for node in (node for run in runs for node in run.nodes if not self.ranks or node.rank in self.ranks):
            lines = self.runs.lines(node.run)
            yield from (f"[{node.rank} {node.run.name}] {line}" for line in lines[self._given.get(node.run.id, 0) :])
            self._given[node.run.id] = len(lines)

    def unfinished(self) -> Iterator[str]:
        return iter(())


def prepare(runs: PaperRuns, planned: PlannedTry) -> ReadyTry:
    like = planned.like.name if planned.like else None
    wanted = WantedRuns(planned.plan.stack, planned.job.name, like)
    found = [run for run, _ in runs.runs() if wanted.includes(run["tags"]) and not liked_by(run["fingerprint"])]
    if not found:
        raise TryError(f"nothing of {planned.job.name} has been drawn yet")
    words = {node.name: node.launch["command"] for node in planned.run.nodes}
    nodes = [{**node, "arguments": [node["arguments"][0], *words[node["name"]]]} for node in found[-1]["nodes"]]
    tags = {**found[-1]["tags"], "run": planned.run.name}
    inputs = {"platform": "paper", "desk": runs.place, "displayName": planned.title, "tags": tags}
    return ReadyTry(planned, {**inputs, "nodes": nodes, "until": "accepted"}, ())


def _status(run: Mapping[str, Any], nodes: Sequence[NodeRun]) -> RunStatus:
    rows = zip(run["nodes"], nodes, strict=True)
    seen = tuple(NodeStatus(row["rank"], node, row["role"], "log") for row, node in rows)
    tags, created = run["tags"], datetime.fromisoformat(run["created"])
    return RunStatus(tags["stack"], tags["job"], tags["run"], run["attempt"], created, seen)
