# SPDX-License-Identifier: Apache-2.0
"""`trainyard rehearse --faults`: faults strike real runs, which go on, or are started again and resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.rehearsing import Rehearsals
from tests.support.why_world import skip_without_environments
from trainyard.rehearsal.faults import FAULTS

pytestmark = pytest.mark.engine
# Words that tell the kinds of faults apart in a report.
_WORDS = {
    "are killed": "killed",
    "are stopped": "stopped",
    "the disk of": "disk filled",
    "the rule ": "rule closed",
    "object store": "store lost",
    "out of capacity": "no capacity",
    "taken back": "spot notice",
}
# With this seed, the first two kinds are those of the sample.
_SEED, _SAMPLE = "9", {"killed", "no capacity"}
_NODES = frozenset({"killed", "stopped", "disk filled"})


def _ring(root: Path) -> Rehearsals:
    ring = Rehearsals.of_ring(root)
    ring.change("Pulumi.ring.yaml", "command: train.py", "command: steps.py")
    return ring


def _outcomes(team: Rehearsals, stack: str, many: int) -> tuple[dict[str, dict[str, Any]], str]:
    """The faults of a rehearsal by kind, and what was left out."""
    report = team.report(stack, "--nodes", "2", "--faults", str(many), "--seed", _SEED)
    assert report["verdict"] == "passed", report
    assert team.left() == []
    found = {_WORDS[next(words for words in _WORDS if words in one["fault"])]: one for one in report["faults"]}
    assert len(found) == len(report["faults"]) == many, report["faults"]
    for kind, one in found.items():
        assert "SUCCEEDED" in (one["state"], one["again"]), one
        assert one["loss"] == one["undisturbedLoss"] != "", one
        # A rule that is closed while nobody needs it is not noticed.
        assert one["struck"] or kind == "rule closed", one
    for kind in _NODES & found.keys():
        assert found[kind]["state"] == "FAILED", found[kind]
    return found, "\n".join(report["faultsLeftOut"])


def test_a_killed_run_resumes_and_a_refused_start_is_named(tmp_path: Path) -> None:
    found, _ = _outcomes(_ring(tmp_path), "ring", len(_SAMPLE))
    assert set(found) == _SAMPLE
    killed, refused = found["killed"], found["no capacity"]
    assert "SIGKILL" in killed["said"]
    assert killed["fault"].split()[3] in killed["said"], "the victim"
    assert killed["resumed"] is True
    assert killed["fromStep"] > 1
    assert refused["state"] == "NOT STARTED"
    assert "Out of host capacity" in refused["said"]


@pytest.mark.torture
@pytest.mark.parametrize(
    ("stack", "impossible"),
    [("ring", {"spot notice"}), ("ring-openpai", {"rule closed", "store lost", "no capacity", "spot notice"})],
)
def test_every_kind_of_fault_strikes_a_run_that_ends_like_an_undisturbed_one(
    tmp_path: Path, stack: str, impossible: set[str]
) -> None:
    found, left_out = _outcomes(_ring(tmp_path), stack, len(FAULTS) - len(impossible))
    assert set(found) == set(FAULTS) - impossible
    assert all(f"sum: {kind}: " in left_out for kind in impossible), left_out
    assert found["stopped"]["resumed"] is True
    assert found["stopped"]["said"]
    assert "No space left on device" in found["disk filled"]["said"]
    if stack == "ring":
        assert found["store lost"]["state"] == "SUCCEEDED"


@pytest.mark.torture
def test_spot_machines_of_a_cluster_get_their_notice(tmp_path: Path) -> None:
    skip_without_environments("pytorch")
    team = Rehearsals.of_examples(tmp_path, "aws-small")
    team.change("Pulumi.aws-small.yaml", "ami: none\n", "ami: none\n        market: spot\n")
    team.change("Pulumi.aws-small.yaml", "--epochs 30", "--epochs 60")
    impossible = {"no capacity", "disk filled"}
    found, left_out = _outcomes(team, "aws-small", len(FAULTS) - len(impossible))
    assert set(found) == set(FAULTS) - impossible
    assert all(f"ddp: {kind}: " in left_out for kind in impossible), left_out
    assert "AWS takes this spot instance back" in found["spot notice"]["said"]
