# SPDX-License-Identifier: Apache-2.0
"""The state an earlier release made previews under this one, and nothing in it is replaced or removed.

What could not be taken over stands in the recording's `replaced.json`, with the only properties that may force it, and
in the CHANGELOG.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_team import Team

pytestmark = pytest.mark.engine

PROVIDERS = "pulumi:providers:"
RECORDED = sorted(path.parent for path in Path(__file__).parent.glob("*/state.json"))


def _runs(recording: Path) -> list[dict[str, Any]]:
    rows = json.loads((recording / "state.json").read_text())["deployment"]["resources"]
    return [row["inputs"] for row in rows if row["type"] == "trainyard:index:Run"]


def test_recordings_hold_what_nodes_are_told() -> None:
    """Any other byte of a launch document replaces the run, and so fails the previews below."""
    runs = {recording.name: run for recording in RECORDED for run in _runs(recording)}
    assert set(runs) == {path.name for path in RECORDED}
    for run in runs.values():
        assert all("TRAINYARD_LAUNCH" in node["environment"] for node in run["nodes"])
    told = runs["0.2.0-git"]["nodes"][0]["environment"]
    assert {"URI", "GIT_BRANCH", "GIT_COMMIT", "GIT_SECRET_ID"} <= {name.removeprefix("OCI__RUNTIME_") for name in told}
    assert runs["0.2.0-node-groups"]["layout"] == "node-groups"


def _announced(recording: Path) -> dict[str, set[str]]:
    file = recording / "replaced.json"
    return {urn: set(reasons) for urn, reasons in json.loads(file.read_text()).items()} if file.exists() else {}


@pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.name)
def test_an_earlier_release_is_taken_over_without_replacement(recording: Path, tmp_path: Path) -> None:
    team = Team(tmp_path)
    try:
        team.take_over(recording)
        seen = team.attempt("preview", "local", "--json", "--diff")
        assert seen.returncode == 0, seen.stdout + seen.stderr
        told = json.loads(seen.stdout[seen.stdout.index("{") :])
        # A provider that is no longer needed goes without anything of the stack.
        gone = [step["urn"] for step in told["steps"] if step["op"] == "delete" and PROVIDERS not in step["urn"]]
        assert not gone
        changes = told["changeSummary"]
        assert set(changes) <= {"same", "update", "create", "delete", "replace"}, changes
        replaced = {step["urn"]: set(step["replaceReasons"]) for step in told["steps"] if step["op"] == "replace"}
        assert replaced == _announced(recording)
        known = {row["urn"] for row in json.loads((recording / "state.json").read_text())["deployment"]["resources"]}
        assert not [step["urn"] for step in told["steps"] if step["op"] == "create" and step["urn"] in known]
        kept = [urn for urn in known if PROVIDERS not in urn]
        assert changes["same"] + changes.get("update", 0) + len(replaced) >= len(kept)
    finally:
        team.end()
