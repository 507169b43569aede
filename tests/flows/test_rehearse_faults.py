# SPDX-License-Identifier: Apache-2.0
"""`trainyard rehearse --faults`: faults strike real runs, which go on, or are started again and resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.rehearsing import Rehearsals
from trainyard.rehearsal.faults import FAULTS

pytestmark = pytest.mark.engine
# Words that tell the kinds of faults apart in a report.
_WORDS = {
    "are killed": "killed",
    "are stopped": "stopped",
    "the rule ": "rule closed",
    "object store": "store lost",
    "out of capacity": "no capacity",
}
# With this seed, the first two kinds are those of the sample.
_SEED, _SAMPLE = "21", {"killed", "no capacity"}


def _outcomes(root: Path, many: int) -> dict[str, dict[str, Any]]:
    ring = Rehearsals.of_ring(root)
    ring.change("Pulumi.ring.yaml", "command: train.py", "command: steps.py")
    report = ring.report("ring", "--nodes", "2", "--faults", str(many), "--seed", _SEED)
    assert report["verdict"] == "passed", report
    assert ring.left() == []
    found = {_WORDS[next(words for words in _WORDS if words in one["fault"])]: one for one in report["faults"]}
    assert len(found) == len(report["faults"]), report["faults"]
    for one in found.values():
        assert "SUCCEEDED" in (one["state"], one["again"]), one
        assert one["loss"] == "loss 0.0166667", "as in an undisturbed run"
    return found


def test_a_killed_run_resumes_and_a_refused_start_is_named(tmp_path: Path) -> None:
    found = _outcomes(tmp_path, len(_SAMPLE))
    assert set(found) == _SAMPLE
    killed, refused = found["killed"], found["no capacity"]
    assert killed["state"] == "FAILED"
    assert "worker-0" in killed["said"]
    assert "SIGKILL" in killed["said"]
    assert killed["resumed"] is True
    assert killed["fromStep"] > 1
    assert refused["state"] == "NOT STARTED"
    assert "Out of host capacity" in refused["said"]


@pytest.mark.torture
def test_every_kind_of_fault_strikes_a_run_that_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    found = _outcomes(tmp_path, len(FAULTS))
    assert set(found) == set(FAULTS)
    assert found["stopped"]["resumed"] is True
    assert found["stopped"]["said"]
    assert found["store lost"]["state"] == "SUCCEEDED"
