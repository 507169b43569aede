# SPDX-License-Identifier: Apache-2.0
"""Reads the runs of a stack, or of several, repeatedly: states, log lines, progress, failures, dropped packets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from catalog.platforms import platform_in, require_capability
from components.platform.calls import Call, LocalCloud, ProviderError, call_of
from components.platform.client import (
    FIRST_PATIENCE,
    FolderPlace,
    LineMerger,
    RunClients,
    RunReader,
    Runs,
    UnknownPlaceError,
    Where,
)
from components.platform.connections import read_connections
from components.platform.progress import ProgressPoint, crowded_point, read_point
from components.platform.runs import NodeRun, overall_state
from components.platform.status import ConnectionsSeen, MachineSeen, RunStatus, WantedRuns
from components.platform.traffic import DroppedResult
from localcloud import admin
from localcloud.control import CloudError

Series = Mapping[int, Sequence[ProgressPoint]]
# `state`; `nodes`, each with id, name, state and details; for a failed run, `reason`; `dropped` packets.
RunReport = Mapping[str, Any]


@dataclass
class Look:
    """Reads the wanted runs of one client repeatedly."""

    runs: Runs
    reader: RunReader
    call: Call
    # Seconds of retries on network errors, from the second read on.
    patience: float
    _merged: dict[frozenset[int], LineMerger] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return self.runs.where

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        seen = self.reader.look(self.call, deeply, history)
        self.call = replace(self.call, patience=self.patience)
        return seen

    def machines(self) -> Sequence[MachineSeen]:
        return self.reader.machines(self.call)

    def lines(self, runs: Iterable[RunStatus], ranks: frozenset[int]) -> Iterator[str]:
        """The complete log lines since the last call, each with its rank. Without ranks: of all ranks."""
        if ranks not in self._merged:
            self._merged[ranks] = self.runs.merger(self.call, ranks)
        return self._merged[ranks].new(runs)

    def unfinished(self, ranks: frozenset[int]) -> Sequence[str]:
        """The incomplete last lines, as they were at the last call of `lines`."""
        return list(self._merged[ranks].unfinished()) if ranks in self._merged else ()

    def place_of(self, run: RunStatus) -> FolderPlace | None:
        return self.runs.place_of(run)

    def cancel(self, run: RunStatus) -> None:
        self.runs.cancel(self.call, [node.run for node in run.nodes if not node.run.over])


def look_for(where: Where, wanted: WantedRuns) -> Look:
    """Raises UnknownPlaceError if the place of the runs is unknown."""
    runs = require_capability(platform_in(where.config), RunClients).of_caller(where)
    if not runs.place:
        raise UnknownPlaceError(runs.unknown_place)
    call = call_of("runs", where.tell)
    return Look(runs, runs.reader(wanted), replace(call, patience=FIRST_PATIENCE), call.patience)


@dataclass
class ProgressHistory:
    """Collects the points of each rank. `recall` is called once for each run."""

    recall: Callable[[RunStatus], Series]
    _points: dict[str, dict[int, list[ProgressPoint]]] = field(default_factory=dict)

    def observe(self, run: RunStatus, moment: float) -> Series:
        """Every point of a run, the newest included."""
        start = run.nodes[0].run.id
        if start not in self._points:
            self._points[start] = {rank: list(points) for rank, points in self.recall(run).items()}
        for node in run.nodes:
            own = self._points[start].setdefault(node.rank, [])
            point = read_point(moment, (node.launcher_status or {}).get("progress"))
            if point is not None and (not own or own[-1].content != point.content):
                own.append(point)
                gone = crowded_point([known.moment for known in own])
                if gone is not None:
                    del own[gone]
        return self._points[start]


def recall_progress(look: Look | SeveralLooks, cloud: LocalCloud | None) -> Callable[[RunStatus], Series]:
    """Returns a function that reads a run's earlier reports from the local cloud. Real clouds keep none."""

    def recall(run: RunStatus) -> Series:
        place = look.place_of(run)
        if cloud is None or place is None:
            return {}
        try:
            return admin.read_progress(cloud, place.bucket, place.prefix)
        except CloudError:  # states are shown without progress
            return {}

    return recall


@dataclass
class SeveralLooks:
    """A `Look` at several places. The `Look` that saw a run last answers for it."""

    where: str
    looks: Sequence[Look]
    _seen: list[tuple[RunStatus, Look]] = field(default_factory=list)

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        self._seen = [(run, look) for look in self.looks for run in look.look(deeply, history)]
        return sorted((run for run, _ in self._seen), key=lambda run: (run.created, run.title))

    def machines(self) -> Sequence[MachineSeen]:
        return [machine for look in self.looks for machine in look.machines()]

    def lines(self, runs: Iterable[RunStatus], ranks: frozenset[int]) -> Iterator[str]:
        wanted = {id(run) for run in runs}
        for look in self.looks:
            if mine := [run for run, seen_by in self._seen if seen_by is look and id(run) in wanted]:
                yield from look.lines(mine, ranks)

    def unfinished(self, ranks: frozenset[int]) -> Sequence[str]:
        return [line for look in self.looks for line in look.unfinished(ranks)]

    def place_of(self, run: RunStatus) -> FolderPlace | None:
        look = self._look_of(run)
        return look.place_of(run) if look is not None else None

    def cancel(self, run: RunStatus) -> None:
        look = self._look_of(run)
        if look is not None:
            look.cancel(run)

    def _look_of(self, run: RunStatus) -> Look | None:
        return next((look for seen, look in self._seen if seen is run), None)


def runs_now(
    outputs: Mapping[str, Any], where: Where, wanted: WantedRuns, explain: Callable[[RunStatus], str]
) -> list[tuple[str, str, RunReport]]:
    """Job, name and current report of each run. A run that cannot be read keeps the report in `outputs`. `explain`:
    the cause of a run's failure in one line, or ""."""
    seen = _read_runs(where, wanted, deeply=False)
    if any(run.state == "FAILED" for run in seen):
        # Only the launchers know which rank failed first.
        seen = _read_runs(where, wanted, deeply=True) or seen
    nodes = {node.run.id: node.run for run in seen for node in run.nodes}
    causes = {node.run.id: cause for run in seen if (cause := explain(run)) for node in run.nodes}
    dropped = {node.run.id: run.dropped or () for run in seen for node in run.nodes}
    return [
        (job, run, _current_report(report, nodes, causes, dropped))
        for job, made in outputs.get("jobs", {}).items()
        for run, report in made["runs"].items()
    ]


def _read_runs(where: Where, wanted: WantedRuns, deeply: bool) -> list[RunStatus]:
    try:
        return look_for(where, wanted).look(deeply=deeply)
    except (ProviderError, UnknownPlaceError):
        return []


def _current_report(
    report: RunReport,
    seen: Mapping[str, NodeRun],
    causes: Mapping[str, str],
    dropped: Mapping[str, Sequence[DroppedResult]],
) -> RunReport:
    nodes, is_seen = [], False
    for node in report["nodes"] or ():
        if now := seen.get(node["id"]):
            node, is_seen = {**node, "state": now.state, "details": now.details}, True
        nodes.append(node)
    state = report["state"]
    if is_seen:
        state = overall_state(NodeRun(node["name"], node["id"], node["state"]) for node in nodes)
    # The launchers know more about a failure than the platform.
    reasons = [causes[node["id"]] for node in nodes if node["id"] in causes]
    reasons += [str(node["details"]) for node in nodes if node["state"] == "FAILED" and node.get("details")]
    pairs = next((dropped[node["id"]] for node in nodes if node["id"] in dropped), ())
    return {**report, "nodes": nodes, "state": state, "reason": next(iter(reasons), ""), "dropped": pairs}


@dataclass
class TrafficReader:
    """Reads how many connections of a run were allowed and dropped, from the local cloud's firewalls.

    The counts of an ended run are cached.
    """

    cloud: LocalCloud
    _over: dict[str, ConnectionsSeen | None] = field(default_factory=dict)

    def __call__(self, run: RunStatus) -> ConnectionsSeen | None:
        """None if no firewall counted the connections, or its counts are deleted."""
        first = run.nodes[0].run.id
        if first not in self._over:
            results = self._ask(run)
            if not run.over:
                return results
            self._over[first] = results
        return self._over[first]

    def _ask(self, run: RunStatus) -> ConnectionsSeen | None:
        try:
            documents = {
                identifier: admin.read_evidence(self.cloud, identifier)
                for identifier in {node.run.id for node in run.nodes}
            }
        except CloudError:
            return None
        return read_connections(run, documents)
