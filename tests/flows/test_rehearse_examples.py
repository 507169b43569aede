# SPDX-License-Identifier: Apache-2.0
"""Every example for OCI is rehearsed and proved, or the report says exactly what was not rehearsed and why."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.examples import EXAMPLES, STACKS, plan
from tests.support.rehearsing import Rehearsals

pytestmark = pytest.mark.engine

OCI = [name for name in EXAMPLES if name.startswith("oci-")]
# An example with stand-ins for network, access and everything else. The others take minutes.
ALWAYS = ["oci-existing"]
ASKED = OCI if os.environ.get("TRAINYARD_TORTURE") else ALWAYS


def leaves_a_result(example: str, job: str) -> bool:
    code = plan(example).jobs[job].code
    files = (STACKS / code.folder).glob("*.py") if code and code.folder else ()
    return any("TRAINYARD_OUTPUT" in file.read_text() for file in files)


@pytest.mark.parametrize("example", ASKED)
@pytest.mark.torture
def test_an_example_passes_or_says_what_was_not_rehearsed(example: str, tmp_path: Path) -> None:
    rehearsals = Rehearsals(tmp_path / "home", STACKS)
    report = rehearsals.report(example, "--prove", "--nodes", "3", "--minutes", "20")
    assert report["verdict"] != "failed", json.dumps(report["runs"], indent=1)
    for run in report["runs"]:
        if run["verdict"] == "passed":
            assert all(rank["joined"] and rank["finished"] for rank in run["ranks"])
            assert run["artifacts"] or not leaves_a_result(example, run["job"])
        else:
            assert run["because"], "why it was not rehearsed"
    expected = {f"{job.name}/{run}" for job in plan(example).jobs.values() for run in job.runs}
    assert {f"{run['job']}/{run['run']}" for run in report["runs"]} == expected
    least = plan(example).access.mode == "least-privilege" and plan(example).network.mode == "least"
    unexplained = [one for one in report["proof"]["outcomes"] if not one["explained"]]
    assert not least or unexplained == []
    assert rehearsals.left() == []


@pytest.mark.torture
def test_a_built_in_program_trains_in_place_of_a_team_s_code(tmp_path: Path) -> None:
    """Dask is in the environment of `make setup`: a real cluster of three nodes, its planned ports and no others."""
    rehearsals = Rehearsals(tmp_path / "home", STACKS)
    report = rehearsals.report("oci-documented", "--code", "built-in", "--nodes", "3")
    assert report["verdict"] == "passed", json.dumps(report["runs"], indent=1)
    for run in report["runs"]:
        assert run["code"] == "built-in"
        assert {rank["role"] for rank in run["ranks"]} == {"scheduler", "worker"}
        assert "result.json" in {artifact["name"] for artifact in run["artifacts"]}
    joined = {pair for rule in report["rules"] for pair in rule["pairs"]}
    assert any("worker-0 -> " in pair and "scheduler-0" in pair for pair in joined)
    assert rehearsals.left() == []
