# SPDX-License-Identifier: Apache-2.0
"""A stack that cannot be reviewed, by an error of ours, is a result of its own, and hides no other one."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from components.platform.review import Snapshot
from tests.support.examples import STACKS
from trainyard.review import reviewing
from trainyard.review.evaluate import ReviewContext, review_snapshots
from trainyard.review.gates import find_tripped_gates, parse_gates
from trainyard.review.model import Review
from trainyard.review.recorder import RecordingError, RecordingProcess
from trainyard.review.recorders import Recorders
from trainyard.review.recording import Recorded
from trainyard.review.revisions import working_tree
from trainyard.review.sections import review_sections, review_verdict

NAMES = ("oci-dask-ml", "oci-pytorch-ddp", "oci-ray")


@pytest.fixture
def request_of_three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> reviewing.ReviewRequest:
    """No program runs: a recording is empty."""
    for name in NAMES:
        shutil.copy(STACKS / f"Pulumi.{name}.yaml", tmp_path)
    shutil.copytree(STACKS / "examples", tmp_path / "examples")
    monkeypatch.setattr(
        RecordingProcess, "record", lambda self, file, platform, before=None: Recorded(_snapshot(file, platform))
    )
    side = working_tree(tmp_path)
    return reviewing.ReviewRequest(
        [f"Pulumi.{name}.yaml" for name in NAMES], side, None, ReviewContext(date(2026, 11, 26))
    )


def _snapshot(file: Path, platform: str) -> Snapshot:
    return Snapshot(file.stem.removeprefix("Pulumi."), platform, {}, ())


def _reviews(request: reviewing.ReviewRequest) -> dict[str, Review]:
    with Recorders(request.names, request.after, request.before) as recorders:
        return {review.stack: review for review in reviewing.review_stacks(request, recorders, lambda text: None)}


def _is_a_result(reviews: dict[str, Review], reason: str) -> tuple[str, ...]:
    assert tuple(reviews) == NAMES
    failed = reviews[NAMES[1]]
    assert not any(reviews[name].failed for name in (NAMES[0], NAMES[2]))
    assert review_verdict(failed) == f"{NAMES[1]}: could not be reviewed"
    (section,) = review_sections(failed)
    (item,) = section.items
    assert item.words == f"could not be reviewed: {reason}"
    assert item.urgent
    gates = parse_gates("replace,exposure,access-gain,cost=100000,policy,unproven")
    assert {gate.gate for gate in find_tripped_gates([failed], gates)} == {gate.name for gate in gates}
    return item.details


def test_an_error_in_the_evaluation_is_a_result(
    request_of_three: reviewing.ReviewRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_for_one(before: Snapshot, after: Snapshot, *rest: Any) -> Review:
        if after.stack == NAMES[1]:
            raise AttributeError("'list' object has no attribute 'get'")
        return review_snapshots(before, after, *rest)

    monkeypatch.setattr(reviewing, "review_snapshots", fail_for_one)
    reason = "an error of `trainyard review`: AttributeError: 'list' object has no attribute 'get'"
    assert _is_a_result(_reviews(request_of_three), reason) == ("TRAINYARD_TRACEBACK=1 shows where",)
    monkeypatch.setenv("TRAINYARD_TRACEBACK", "1")
    details = _is_a_result(_reviews(request_of_three), reason)
    assert any(line.startswith("File ") and "fail_for_one" in line for line in details)


def test_a_program_that_fails_is_a_result(
    request_of_three: reviewing.ReviewRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(self: RecordingProcess, file: Path, platform: str, before: Any = None) -> Recorded:
        if NAMES[1] in file.name:
            raise RecordingError("Traceback (most recent call last):\n  ...\nKeyError: 'shape'")
        return Recorded(_snapshot(file, platform))

    monkeypatch.setattr(RecordingProcess, "record", record)
    reason = "its program failed while it was recorded: KeyError: 'shape'"
    assert _is_a_result(_reviews(request_of_three), reason) == ("TRAINYARD_TRACEBACK=1 shows where",)
