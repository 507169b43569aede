# SPDX-License-Identifier: Apache-2.0
"""Recorded drifts: what a stack's cloud answers after drawn changes, and the output of `trainyard drift` about it.

What the stack declared is a recorded state of tests/upgrade. What its cloud has is in the recording, so no cloud is
needed. How the answers are read from a cloud is tested in tests/flows/drift.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import unified_diff
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from catalog.platforms import platform_folder, platforms_with, require_capability
from components.platform.live import LiveReading, LiveSide, Reading
from components.platform.review import ReviewPlatform
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus
from trainyard.cli.drift import drift_json, drift_lines
from trainyard.drift.compare import Drift, EffectDifferences, compare_effects, compare_resources, compare_runs, in_order
from trainyard.drift.declared import Declared, of_export

DRIFTS = Path(__file__).parent / "drifts"
STATES = Path(__file__).parents[1] / "upgrade"


def drift_names() -> list[str]:
    return sorted(file.name for file in DRIFTS.glob("*.json"))


@cache
def declared_state(state: str, name: str) -> Declared:
    return of_export((STATES / state / "state.json").read_text("utf-8"), "local", name)


def drift_of(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The output of the command as JSON and as lines, for the recorded answers of a cloud."""
    declared = declared_state(recorded["state"], recorded["platform"])
    side = _live_side(declared, recorded["platform"], recorded["live"])
    judged = recorded["platform"] in platforms_with(ReviewPlatform)
    effects = EffectDifferences((), judged=False)
    if judged:
        effects = compare_effects(
            require_capability(recorded["platform"], ReviewPlatform), side.declared, side.snapshot
        )
    runs = [_run_status(title, state) for title, state in recorded["runs"].items()]
    remarks = in_order((*compare_resources(side, effects), *compare_runs(declared.runs, runs)))
    unread = tuple(dict.fromkeys((*side.unread, *effects.unread)))
    drift = Drift(declared.snapshot.stack, recorded["platform"], remarks, unread)
    return {"json": drift_json(drift), "lines": list(drift_lines(drift))}


def _live_side(declared: Declared, name: str, answers: Mapping[str, Any]) -> LiveSide:
    reading = Reading(declared.snapshot, lambda error: False)
    resources = {resource.urn: resource for resource in declared.snapshot.resources}
    for urn, inputs in answers["changed"].items():
        reading.record(resources[urn], inputs)
    for urn in answers["missing"]:
        reading.record_missing(resources[urn])
    for row in answers["undeclared"]:
        reading.add(row["type"], row["id"], row["inputs"], row["words"])
    for text in answers["unread"]:
        reading.unread(text)
    return reading.side(_inputs_judged_by_meaning(name))


def _inputs_judged_by_meaning(name: str) -> Mapping[str, frozenset[str]]:
    if name not in platforms_with(LiveReading):
        return {}
    judged: Mapping[str, frozenset[str]] = import_module(f"components.{platform_folder(name)}.client.live").JUDGED
    return judged


def _run_status(title: str, state: str) -> RunStatus:
    job, _, name = title.partition("/")
    node = NodeStatus(0, NodeRun(f"{title}-0", "id", state), "main")
    return RunStatus("local", job, name, 1, datetime(2026, 11, 26, tzinfo=UTC), (node,))


def recorded_drift(name: str) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads((DRIFTS / name).read_text("utf-8"))
    return recorded


def difference(name: str) -> str:
    """The difference from the recorded drift as a diff. Empty if every byte is the same."""
    recorded = recorded_drift(name)
    before, now = (json.dumps(drift, indent=1, sort_keys=True) for drift in (recorded["drift"], drift_of(recorded)))
    return "\n".join(unified_diff(before.splitlines(), now.splitlines(), f"recorded/{name}", "now"))


def renew_drift(name: str) -> None:
    recorded = recorded_drift(name)
    write_drift(name, {**recorded, "drift": drift_of(recorded)})


def write_drift(name: str, recorded: Mapping[str, Any]) -> None:
    (DRIFTS / name).write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", "utf-8")
