# SPDX-License-Identifier: Apache-2.0
"""The points of progress that successive status objects leave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.platform.progress import MOST_POINTS
from localcloud.oci import background_tasks
from localcloud.oci.tenancy_store import StateStore
from localcloud.server import progress_record


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    opened = StateStore(tmp_path / "state")
    yield opened
    opened.close()


def put(store: StateStore, folder: Path, name: str, content: str, moment: float = 1.0) -> None:
    file = folder / "object"
    file.write_text(content)
    if progress_record.is_status_object(name, file.stat().st_size):
        progress_record.record_status(store, "bucket", name, progress_record.read_status_file(file), moment)


def status(step: int) -> str:
    return json.dumps({"state": "running", "progress": {"step": step, "loss": 1 / (step + 1)}})


def test_each_version_adds_a_point_up_to_a_bound(store: StateStore, tmp_path: Path) -> None:
    for step in range(700):
        put(store, tmp_path, "j/r/1/s/status/3.json", status(step), float(step))
    put(store, tmp_path, "j/r/1/s/status/3.json", status(699), 9999.0)
    (points,) = progress_record.recorded_progress(store, "bucket", "j/r/1/s", 10_000).values()
    assert MOST_POINTS / 3 < len(points) <= MOST_POINTS
    assert (points[0].step, points[-1].step, points[-1].moment) == (0, 699, 699.0)
    (thinned,) = progress_record.recorded_progress(store, "bucket", "j/r/1/s", 7).values()
    assert (len(thinned), thinned[0].step, thinned[-1].step) == (7, 0, 699)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("status/3.json.bak", status(1)), ("a/status/x.json", status(1)), ("a/status/\u0663.json", status(1)),
        ("a/status/1.json", "[1]"), ("a/status/1.json", '"x"'), ("a/status/1.json", "{"), ("a/status/1.json", "[" * 99),
        ("a/status/1.json", '{"progress": "words"}'), ("a/status/1.json", '{"progress": {"a": 1' + "0" * 5000 + "}}"),
        ("a/status/1.json", status(1) + " " * progress_record.LONGEST_BYTES),
    ],
)  # fmt: skip
def test_other_objects_are_ignored(store: StateStore, tmp_path: Path, name: str, content: str) -> None:
    put(store, tmp_path, name, content)
    assert store.connection.execute("SELECT count(*) FROM progress").fetchone() == (0,)


def test_runs_have_separate_progress(store: StateStore, tmp_path: Path) -> None:
    for folder in ("j/r", "j/r/status", "j/r%", "j/ra"):
        put(store, tmp_path, f"{folder}/status/0.json", status(len(folder)))
    for folder in ("j/r", "j/r%", "j/ra"):
        assert [point.step for point in progress_record.recorded_progress(store, "bucket", folder, 9)[0]] == [
            len(folder)
        ]
    assert progress_record.recorded_progress(store, "another", "j/r", 9) == {}


def test_the_oldest_points_are_pruned_first(store: StateStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_tasks, "PROGRESS_KEPT", 5)
    for rank in range(9):
        put(store, tmp_path, f"j/status/{rank}.json", status(rank))
    background_tasks.prune_rows(store)
    assert list(progress_record.recorded_progress(store, "bucket", "j", 9)) == [4, 5, 6, 7, 8]
