# SPDX-License-Identifier: Apache-2.0
"""The runs of a stack with the states of now: outputs and states say how far a run was when `up` waited for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.platform.calls import ProviderError
from components.platform.client import UnknownPlaceError, Where
from components.platform.runs import NodeRun, overall
from components.platform.status import RunStatus, WantedRuns, find_cause
from trainyard.runs.look import look_for

# `state`, `nodes` with the id, the name, the state and the details of each, and of a failed run its `reason`.
RunReport = Mapping[str, Any]


def runs_now(outputs: Mapping[str, Any], where: Where, wanted: WantedRuns) -> list[tuple[str, str, RunReport]]:
    """Job, name and report of each run. A run that cannot be seen stays as its report says."""
    seen = _seen(where, wanted, deeply=False)
    if any(run.state == "FAILED" for run in seen):
        # Only the launchers know which rank failed first.
        seen = _seen(where, wanted, deeply=True) or seen
    nodes = {node.run.id: node.run for run in seen for node in run.nodes}
    causes = {node.run.id: cause.words for run in seen if (cause := find_cause(run)) for node in run.nodes}
    return [
        (job, run, _renewed(report, nodes, causes))
        for job, made in outputs.get("jobs", {}).items()
        for run, report in made["runs"].items()
    ]


def _seen(where: Where, wanted: WantedRuns, deeply: bool) -> list[RunStatus]:
    try:
        return look_for(where, wanted).look(deeply=deeply)
    except (ProviderError, UnknownPlaceError):
        return []


def _renewed(report: RunReport, seen: Mapping[str, NodeRun], causes: Mapping[str, str]) -> RunReport:
    nodes = [_now(node, seen.get(node["id"])) for node in report["nodes"] or ()]
    if not any(node["id"] in seen for node in nodes):
        state = report["state"]
    else:
        state = overall(NodeRun(node["name"], node["id"], node["state"]) for node in nodes)
    return {**report, "nodes": nodes, "state": state, "reason": next(_reasons(nodes, causes), "")}


def _now(node: Mapping[str, Any], seen: NodeRun | None) -> Mapping[str, Any]:
    return {**node, "state": seen.state, "details": seen.details} if seen else node


def _reasons(nodes: Sequence[Mapping[str, Any]], causes: Mapping[str, str]) -> Iterator[str]:
    """What the launchers say, and what the platform says of the nodes that failed."""
    yield from (causes[node["id"]] for node in nodes if node["id"] in causes)
    yield from (str(node["details"]) for node in nodes if node["state"] == "FAILED" and node.get("details"))
