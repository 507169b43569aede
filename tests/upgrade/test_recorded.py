# SPDX-License-Identifier: Apache-2.0
"""A state of an earlier release previews under this one, with nothing replaced or removed.

Exceptions are in the recording's `replaced.json`, with the only properties that may force a replacement, and in the
CHANGELOG.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_team import Team
from tests.support.programs import require_program

pytestmark = pytest.mark.engine

PROVIDERS = "pulumi:providers:"
RECORDINGS = Path(__file__).parent
RECORDED = sorted(path.parent for path in RECORDINGS.glob("*/state.json"))


def _runs(recording: Path) -> list[dict[str, Any]]:
    rows = json.loads((recording / "state.json").read_text())["deployment"]["resources"]
    return [row["inputs"] for row in rows if row["type"] == "trainyard:index:Run"]


def test_recordings_contain_launch_documents() -> None:
    """Any other byte of a launch document replaces the run, and so fails the previews below."""
    recorded = {recording.name: _runs(recording) for recording in RECORDED}
    assert all(recorded.values())
    for run in (run for runs in recorded.values() for run in runs if "protocol" not in run):
        assert all("TRAINYARD_LAUNCH" in node["environment"] for node in run["nodes"])
    told = recorded["0.2.0-git"][0]["nodes"][0]["environment"]
    assert {"URI", "GIT_BRANCH", "GIT_COMMIT", "GIT_SECRET_ID"} <= {name.removeprefix("OCI__RUNTIME_") for name in told}
    assert recorded["0.2.0-node-groups"][0]["layout"] == "node-groups"


def test_recordings_of_openpai_contain_both_kinds_of_start() -> None:
    """On OpenPAI the launch document is a line of the job's text, and a plain start has none."""
    texts = [json.dumps(run["protocol"]["taskRoles"]) for run in _runs(RECORDINGS / "0.2.0-openpai")]
    assert {"export TRAINYARD_LAUNCH=" in text for text in texts} == {True, False}


@pytest.mark.parametrize(("recording", "values"), [("0.2.0-aws-dl1", ("0.1", "0.01")), ("0.2.0-openpai", ("1", "2"))])
def test_recordings_contain_a_run_for_each_value_of_a_sweep(recording: str, values: tuple[str, ...]) -> None:
    names = {run["tags"]["run"] for run in _runs(RECORDINGS / recording)}
    assert names >= {"base", *(f"sweep-lr-{value}" for value in values)}


def _announced(recording: Path) -> dict[str, set[str]]:
    file = recording / "replaced.json"
    return {urn: set(reasons) for urn, reasons in json.loads(file.read_text()).items()} if file.exists() else {}


def _steps(team: Team) -> dict[str, str]:
    told = team.trainyard("preview", "local", "--json")
    steps = json.loads(told[told.index("{") : told.rindex("}") + 1])["steps"]
    return {step["urn"]: step["op"] for step in steps}


def test_another_spelling_of_the_platform_changes_nothing_of_a_recorded_stack(tmp_path: Path) -> None:
    require_program("ssh-keygen")
    team = Team(tmp_path)
    try:
        team.take_over(RECORDINGS / "0.2.0-aws-dl1")
        before = _steps(team)
        team.configure("platform", "aws")
        assert _steps(team) == before
        assert any("trainyard:aws-dl1:Cluster" in urn for urn in before)
    finally:
        team.end()


def test_a_change_of_the_access_mode_replaces_no_policy_of_a_recorded_stack(tmp_path: Path) -> None:
    """While a policy is replaced, running nodes have none of its rights."""
    require_program("ssh-keygen")
    team = Team(tmp_path)
    try:
        team.take_over(RECORDINGS / "0.2.0-aws-dl1")
        for mode in ("documented", "proof-of-concept"):
            team.configure("access", {"mode": mode, "users": {"group": "vision-scientists"}})
            changes = {urn.rpartition("::")[2]: op for urn, op in _steps(team).items() if ":iam/" in urn}
            assert changes["demo-gaudi-nodes"] == {"documented": "update", "proof-of-concept": "delete"}[mode]
            assert set(changes.values()) <= {"same", "update", "create", "delete"}, changes
    finally:
        team.end()


@pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.name)
def test_an_earlier_release_is_taken_over_without_replacement(recording: Path, tmp_path: Path) -> None:
    if recording.name.endswith("-aws-dl1"):
        require_program("ssh-keygen")
    team = Team(tmp_path)
    try:
        team.take_over(recording)
        seen = team.attempt("preview", "local", "--json", "--diff")
        assert seen.returncode == 0, seen.stdout + seen.stderr
        told = json.loads(seen.stdout[seen.stdout.index("{") :])
        # A provider resource that is no longer needed may be removed, because it has no counterpart in the cloud.
        gone = [step["urn"] for step in told["steps"] if step["op"] == "delete" and PROVIDERS not in step["urn"]]
        assert not gone
        changes = told["changeSummary"]
        assert set(changes) <= {"same", "update", "create", "delete", "replace"}, changes
        replaced = {step["urn"]: set(step["replaceReasons"]) for step in told["steps"] if step["op"] == "replace"}
        assert replaced == _announced(recording)
        # What a release adds to the inputs of runs changes none of them.
        assert not [step["urn"] for step in told["steps"] if step["op"] == "update" and ":index:Run::" in step["urn"]]
        known = {row["urn"] for row in json.loads((recording / "state.json").read_text())["deployment"]["resources"]}
        assert not [step["urn"] for step in told["steps"] if step["op"] == "create" and step["urn"] in known]
        kept = [urn for urn in known if PROVIDERS not in urn]
        assert changes["same"] + changes.get("update", 0) + len(replaced) >= len(kept)
    finally:
        team.end()
