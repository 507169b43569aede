# SPDX-License-Identifier: Apache-2.0
"""Old rows are pruned, and live resources are kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.oci import background_tasks
from localcloud.oci.services.logs import write_lines
from localcloud.oci.store import StateStore, StoredResource


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateStore]:
    for bound in ("DELETED_KEPT", "WORK_REQUESTS_KEPT", "LINES_KEPT"):
        monkeypatch.setattr(background_tasks, bound, 3)
    opened = StateStore(tmp_path / "state.sqlite3")
    yield opened
    opened.close()


def _ids(store: StateStore, where: str) -> list[str]:
    return [row.id for row in store.select(f"{where} ORDER BY sequence", ())]


def test_the_newest_deleted_resources_are_kept(store: StateStore) -> None:
    for number in range(10):
        store.add(StoredResource(f"vcn-{number}", "vcn", "c", "n", "TERMINATED", {}, live=number < 2))
    background_tasks.prune(store)
    assert _ids(store, "1") == ["vcn-0", "vcn-1", "vcn-7", "vcn-8", "vcn-9"]
    assert background_tasks.prune(store) == 0


def test_work_requests_and_log_lines_are_bounded(store: StateStore) -> None:
    for number in range(5):
        store.add(StoredResource(f"w-{number}", "work-request", "c", "", "", {}))
    write_lines(store, "log", "", "", "", [(number, str(number), "x") for number in range(6)])
    background_tasks.prune(store)
    assert _ids(store, "kind = 'work-request'") == ["w-2", "w-3", "w-4"]
    assert [row[0] for row in store.connection.execute("SELECT id FROM log_lines")] == ["3", "4", "5"]


def test_old_rows_are_pruned_in_batches(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_tasks, "_BATCH", 2)
    for number in range(8):
        store.add(StoredResource(f"vcn-{number}", "vcn", "c", "n", "", {}, live=False))
    assert [background_tasks.prune(store) for _ in range(4)] == [2, 2, 1, 0]


def test_a_long_server_log_is_copied_and_truncated(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    background_tasks.trim_server_log(path)
    with path.open("a") as log:
        log.write("x" * 100)
        log.flush()
        background_tasks.trim_server_log(path, 1000)
        assert path.stat().st_size == 100
        background_tasks.trim_server_log(path, 99)
        log.write("after")
    assert (path.read_text(), (tmp_path / "server.log.old").read_text()) == ("after", "x" * 100)


def test_folders_of_unknown_runs_are_removed(tmp_path: Path) -> None:
    for name in ("known", "unknown"):
        (tmp_path / name / "node-0").mkdir(parents=True)
    background_tasks.remove_folders(tmp_path, ["known"])
    assert [path.name for path in tmp_path.iterdir()] == ["known"]
    background_tasks.remove_folders(tmp_path / "none", [])
