# SPDX-License-Identifier: Apache-2.0
"""Old rows are pruned, and live resources are kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.oci import background_tasks, log_lines
from localcloud.oci.log_lines import LINE_BYTES, count_usage, forget_lines, write_lines
from localcloud.oci.tenancy_store import StateStore, StoredResource


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateStore]:
    for bound in ("DELETED_KEPT", "WORK_REQUESTS_KEPT", "PROGRESS_KEPT"):
        monkeypatch.setattr(background_tasks, bound, 3)
    opened = StateStore(tmp_path / "state.sqlite3")
    yield opened
    opened.close()


def _ids(store: StateStore, where: str) -> list[str]:
    return [row.id for row in store.select(f"{where} ORDER BY sequence", ())]


def test_the_newest_deleted_resources_are_kept(store: StateStore) -> None:
    for number in range(10):
        store.add(StoredResource(f"vcn-{number}", "vcn", "c", "n", "TERMINATED", {}, live=number < 2))
    background_tasks.prune_rows(store)
    assert _ids(store, "1") == ["vcn-0", "vcn-1", "vcn-7", "vcn-8", "vcn-9"]
    assert background_tasks.prune_rows(store) == 0


def test_work_requests_are_bounded(store: StateStore) -> None:
    for number in range(5):
        store.add(StoredResource(f"w-{number}", "work-request", "c", "", "", {}))
    background_tasks.prune_rows(store)
    assert _ids(store, "kind = 'work-request'") == ["w-2", "w-3", "w-4"]


def test_whoever_has_the_most_loses_the_oldest_rows(store: StateStore) -> None:
    """Another team's flood takes the place of nobody's rows."""
    store.add(StoredResource("mine", "work-request", "mine", "", "", {}))
    store.connection.execute("INSERT INTO progress (bucket, name, moment, point) VALUES ('mine', 'a', 1, '{}')")
    for number in range(9):
        store.add(StoredResource(f"w-{number}", "work-request", "theirs", "", "", {}))
        row = ("theirs", str(number), number, "{}")
        store.connection.execute("INSERT INTO progress (bucket, name, moment, point) VALUES (?, ?, ?, ?)", row)
    background_tasks.prune_rows(store)
    assert _ids(store, "kind = 'work-request'") == ["mine", "w-7", "w-8"]
    assert [row[0] for row in store.connection.execute("SELECT name FROM progress")] == ["a", "7", "8"]
    assert background_tasks.prune_rows(store) == 0


def _write(store: StateStore, log: str, owner: str, *numbers: int, text: str = "") -> None:
    lines = [(number, f"{owner}-{number}", text) for number in numbers]
    write_lines(store, log, owner, "", "", "", lines)


def _lines(store: StateStore, log: str = "log") -> list[str]:
    return [row[0] for row in store.connection.execute("SELECT id FROM log_lines WHERE log = ?", (log,))]


def test_a_flood_of_lines_takes_the_place_of_its_own_lines_only(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty line costs as much as its row, so lines count, not only their bytes."""
    monkeypatch.setattr(log_lines, "OWNER_BYTES_KEPT", 16 * LINE_BYTES)
    _write(store, "log", "before", 0)
    for number in range(100):
        _write(store, "log", "flood", 3 * number, 3 * number + 1, 3 * number + 2)
    _write(store, "log", "long", 0, 1, text="x" * 9 * LINE_BYTES)
    kept = _lines(store)
    assert (kept[0], kept[-1], kept[-2]) == ("before-0", "long-1", "flood-299")
    assert 12 <= len(kept) <= 18
    assert kept[1:-1] == [f"flood-{number}" for number in range(300 - len(kept) + 2, 300)]


def test_many_logs_take_the_place_of_the_largest_only(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "BYTES_KEPT", 32 * LINE_BYTES)
    _write(store, "mine", "me", 0, 1, 2)
    for number in range(100):
        _write(store, f"log-{number % 4}", f"run-{number % 2}", number)
    assert _lines(store, "mine") == ["me-0", "me-1", "me-2"]
    assert 28 <= store.connection.execute("SELECT count(*) FROM log_lines").fetchone()[0] <= 32
    assert store.connection.execute("SELECT max(time) FROM log_lines").fetchone() == (99,)


def test_lines_of_an_earlier_version_are_counted(store: StateStore) -> None:
    _write(store, "log", "run", 0, 1, text="ü")
    usage = "SELECT log, owner, bytes FROM log_usage"
    before = store.connection.execute(usage).fetchall()
    store.connection.execute("DELETE FROM log_usage")
    count_usage(store)
    assert before == store.connection.execute(usage).fetchall() == [("log", "run", 2 * (LINE_BYTES + 2))]
    forget_lines(store, "log")
    assert (_lines(store), store.connection.execute(usage).fetchall()) == ([], [])


def test_old_rows_are_pruned_in_batches(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_tasks, "_BATCH", 2)
    for number in range(8):
        store.add(StoredResource(f"vcn-{number}", "vcn", "c", "n", "", {}, live=False))
    assert [background_tasks.prune_rows(store) for _ in range(4)] == [2, 2, 1, 0]


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
