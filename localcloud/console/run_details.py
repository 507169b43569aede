# SPDX-License-Identifier: Apache-2.0
"""The details of a training run: its ranks, their progress, and their last output. The size of all parts is limited."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from components.platform.connections import read_connections
from components.platform.progress import ProgressPoint, metric_names
from components.platform.status import ConnectionsSeen, NodeStatus, RunStatus
from localcloud.console.connections import draw_connections
from localcloud.console.platform import ConsolePlatform, PlaceNames, RunContent, RunNode, TrainingRun
from localcloud.server.cloud import ServedCloud
from provider.runs.lost import total_words
from trainyard.why.judge import known_cause

# How many metrics get a curve, and how many points are sent for all ranks of a run together.
_CURVES, _MOST_POINTS, _LEAST_POINTS = 4, 1_600, 12
_LONGEST_TEXT, _LONGEST_CAUSE = 300, 1_000
# The firewalls of a running run are read again after this many seconds, or after this multiple of the time that reading
# them took, whichever is longer.
_EVERY_SECONDS, _TIMES = 4.0, 20
_MOST_KEPT = 64


async def collect_run_details(
    platform: ConsolePlatform[Any], run: TrainingRun, network: DrawnNetwork
) -> dict[str, Any]:
    most = max(_LEAST_POINTS, _MOST_POINTS // max(1, len(run.nodes)))
    content = await platform.content(run, most)
    variables = ", ".join(run.variables) or "none"
    ranks = {node.rank for node in run.nodes}
    names = metric_names([point for rank, own in content.points.items() if rank in ranks for point in own])
    return {
        "cause": known_cause(_run_status(run, content, network.connections))[:_LONGEST_CAUSE],
        "facts": [*(list(pair) for pair in content.facts), ["id", run.key], ["variables", variables]],
        "ranks": [_rank_details(node, content) for node in run.nodes],
        "curves": {
            "names": names[:_CURVES],
            "left": names[_CURVES:],
            "ranks": [
                {
                    "rank": rank,
                    "times": [_round_for_curve(one.moment - run.created) for one in own],
                    "steps": [_round_for_curve(one.step) for one in own],
                    "metrics": {
                        name: [_round_for_curve(one.metrics.get(name)) for one in own] for name in names[:_CURVES]
                    },
                }
                for rank, own in content.points.items()
                if rank in ranks
            ],
        },
        "network": network.drawing,
        "lines": list(content.lines),
    }


def _run_status(run: TrainingRun, content: RunContent, connections: ConnectionsSeen | None) -> RunStatus:
    """The run as commands see it."""
    job, _, name = run.title.partition("/")
    nodes = (
        NodeStatus(node.rank, node.run, node.role, launcher_status=content.statuses.get(node.rank))
        for node in run.nodes
    )
    created = datetime.fromtimestamp(run.created, UTC)
    return RunStatus(run.stack, job, name, run.attempt, created, tuple(nodes), connections)


def _rank_details(node: RunNode, content: RunContent) -> dict[str, Any]:
    status: Mapping[str, Any] = content.statuses.get(node.rank, {})
    points: Sequence[ProgressPoint] = content.points.get(node.rank, ())
    last = points[-1] if points else None
    why = (
        _limited_text(status.get("reason"))
        or node.run.details[:_LONGEST_TEXT]
        or ("" if last else _limited_text(status.get("bar")))
    )
    state = node.run.state
    if state == "IN_PROGRESS":  # the launcher's state is more precise
        state = _limited_text(status.get("state")) or state
    return {
        "rank": node.rank,
        "role": node.role,
        "node": node.run.name,
        "state": state,
        "over": node.run.over,
        "started": node.run.started_at,
        "finished": node.run.finished_at,
        "step": last.step if last else None,
        "total": last.total if last else None,
        "metrics": [[name, value] for name, value in last.metrics.items()] if last else [],
        "note": "; ".join(filter(None, (why, total_words([status])))),
    }


def _limited_text(value: Any) -> str:
    return value[:_LONGEST_TEXT] if isinstance(value, str) else ""


def _round_for_curve(value: float | None) -> float | None:
    """Rounds to six digits, which is enough for a curve, and shorter on the wire."""
    return None if value is None else float(f"{value:.6g}")


@dataclass
class DrawnNetwork:
    """The drawing of a run's network, the connections that it shows, and when both have to be read again."""

    drawing: Mapping[str, Any]
    connections: ConnectionsSeen | None
    over: bool
    again_at: float


@dataclass
class NetworkCache:
    """Caches the drawn networks of runs, so that several viewers share one reading of the firewalls."""

    cloud: ServedCloud
    _drawn: dict[str, DrawnNetwork] = field(default_factory=dict)

    async def network(self, run: TrainingRun, places: PlaceNames) -> DrawnNetwork:
        drawn = self._drawn.get(run.key)
        if drawn and (drawn.over or (not run.over and time.monotonic() < drawn.again_at)):
            return drawn
        began = time.monotonic()
        if drawn:  # while this call reads, other calls get the old drawing
            drawn.again_at = began + 60.0
        machines = dict.fromkeys(node.machine for node in run.nodes if node.machine)
        documents = {machine: await self.cloud.evidence(machine) for machine in machines}
        now = time.monotonic()
        again_at = now + max(_EVERY_SECONDS, _TIMES * (now - began))
        self._drawn.pop(run.key, None)
        while len(self._drawn) >= _MOST_KEPT:
            del self._drawn[next(iter(self._drawn))]
        # A machine that carries several runs has counted the connections of all of them.
        own = {node.run.id: documents[node.machine] for node in run.nodes if node.machine == node.run.id}
        connections = read_connections(_run_status(run, RunContent(), None), own) if own else None
        drawn = DrawnNetwork(draw_connections(run, documents, places), connections, run.over, again_at)
        self._drawn[run.key] = drawn
        return drawn
