# SPDX-License-Identifier: Apache-2.0
"""The runs in a stack's outputs, with the states of now: outputs say how far a run was when `up` waited for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provider.base.errors import ProviderError
from provider.runs.model import NodeRun, overall
from runstatus.platform import Question, UnknownPlaceError, run_look

# `state`, and `nodes` with the id, the name and the state of each.
RunReport = Mapping[str, Any]


def runs_now(outputs: Mapping[str, Any], question: Question) -> list[tuple[str, str, RunReport]]:
    """Job, name and report of each run. A run that cannot be seen stays as its report says."""
    try:
        seen = run_look(question).look(deeply=False)
    except (ProviderError, UnknownPlaceError):
        seen = []
    states = {node.run.id: node.run.state for run in seen for node in run.nodes}
    return [
        (job, run, _renewed(report, states))
        for job, made in outputs.get("jobs", {}).items()
        for run, report in made["runs"].items()
    ]


def _renewed(report: RunReport, states: Mapping[str, str]) -> RunReport:
    nodes = [{**node, "state": states.get(node["id"], node["state"])} for node in report["nodes"] or ()]
    if not any(node["id"] in states for node in nodes):
        return {**report, "nodes": nodes}
    state = overall(NodeRun(node["name"], node["id"], node["state"]) for node in nodes)
    return {**report, "nodes": nodes, "state": state}
