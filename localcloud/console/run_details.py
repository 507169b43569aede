# SPDX-License-Identifier: Apache-2.0
"""The details of a training run: its ranks, their progress, and their last output. The size of all parts is limited."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.platform.progress import ProgressPoint, metric_names
from localcloud.console.connections import draw_connections
from localcloud.console.platform import ConsolePlatform, PlaceNames, RunContent, RunNode, TrainingRun
from localcloud.server.cloud import ServedCloud
from provider.runs.lost import total_words

# How many metrics get a curve, and how many points are sent for all ranks of a run together.
_CURVES, _MOST_POINTS, _LEAST_POINTS = 4, 1_600, 12
_LONGEST_TEXT = 300
# The firewalls of a running run are read again after this many seconds, or after this multiple of the time that reading
# them took, whichever is longer.
_EVERY_SECONDS, _TIMES = 4.0, 20
_MOST_KEPT = 64


async def collect_run_details(
    platform: ConsolePlatform[Any], run: TrainingRun, network: Mapping[str, Any]
) -> dict[str, Any]:
    most = max(_LEAST_POINTS, _MOST_POINTS // max(1, len(run.nodes)))
    content = await platform.content(run, most)
    variables = ", ".join(run.variables) or "none"
    ranks = {node.rank for node in run.nodes}
    names = metric_names([point for rank, own in content.points.items() if rank in ranks for point in own])
    return {
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
        "network": network,
        "lines": list(content.lines),
    }


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
class _DrawnNetwork:
    """The drawing of a run's network, and when it has to be read again."""

    content: Mapping[str, Any]
    over: bool
    again_at: float


@dataclass
class NetworkCache:
    """Caches the drawn networks of runs, so that several viewers share one reading of the firewalls."""

    cloud: ServedCloud
    _drawn: dict[str, _DrawnNetwork] = field(default_factory=dict)

    async def network(self, run: TrainingRun, places: PlaceNames) -> Mapping[str, Any]:
        drawn = self._drawn.get(run.key)
        if drawn and (drawn.over or (not run.over and time.monotonic() < drawn.again_at)):
            return drawn.content
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
        self._drawn[run.key] = _DrawnNetwork(draw_connections(run, documents, places), run.over, again_at)
        return self._drawn[run.key].content
