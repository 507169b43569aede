# SPDX-License-Identifier: Apache-2.0
"""Which runs `down` ends before it empties the buckets."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from components.oci.client import job_runs
from components.oci.local import removal


@pytest.mark.parametrize("with_bucket", [True, False])
def test_runs_end_before_their_bucket_is_emptied(monkeypatch: pytest.MonkeyPatch, with_bucket: bool) -> None:
    """A dying run writes its state into the bucket, which then could not be deleted."""
    runs = [
        SimpleNamespace(id=name, lifecycle_state=state, time_finished=None)
        for name, state in (("own", "IN_PROGRESS"), ("try", "IN_PROGRESS"), ("ended", "SUCCEEDED"))
    ]
    steps: list[tuple[str, set[str]]] = []

    class Runs:
        def __init__(self, session: object) -> None: ...

        def runs_of_job(self, *_: object) -> list[Any]:
            return runs

        def cancel(self, call: object, nodes: Sequence[Any]) -> None:
            steps.append(("cancel", {node.id for node in nodes}))

    monkeypatch.setattr(removal, "OciRuns", Runs)
    monkeypatch.setattr(removal, "session_of", lambda *_: None)
    monkeypatch.setattr(job_runs, "node_of_job_run", lambda run: run)
    monkeypatch.setattr(
        removal,
        "wait_for_end",
        lambda call, platform, nodes, minutes: steps.append(("wait", {one.id for one in nodes})),
    )
    rows: list[Any] = [
        {"type": removal.JOB, "id": "job"},
        {"type": "trainyard:index:Run", "id": "run", "outputs": {"nodeRuns": [{"id": "own"}]}},
        *([{"type": removal.BUCKET, "id": "bucket"}] if with_bucket else []),
    ]
    removal.end_other_runs(SimpleNamespace(compartment="c"), rows, lambda text: None)
    ended = {"own", "try"} if with_bucket else {"try"}
    assert steps == [("cancel", ended), ("wait", ended)]
