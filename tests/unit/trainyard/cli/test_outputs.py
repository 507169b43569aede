# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs outputs` names lost files under their run, even if it cannot fetch the others."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from components.openpai.client.files import LocalStorage
from components.platform.client import Where
from components.platform.files import StoredObject, TransferError
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus
from trainyard.cli import outputs
from trainyard.cli.outputs import RunOutput, fetch_outputs, find_outputs, show_outputs

_LOST = {"files": 1, "bytes": 2000, "largest": [], "remedy": "write it elsewhere"}
_SAID = ["  not kept of rank 0: 1 file, 2 kB", "  write it elsewhere"]


def run(name: str) -> RunStatus:
    node = NodeStatus(0, NodeRun("main-0", name, "SUCCEEDED"), "main", launcher_status={"lost": _LOST})
    return RunStatus("dev", "resnet", name, 1, datetime(2026, 5, 1, tzinfo=UTC), (node,), folder="b/f")


def test_lost_files_are_named_if_nothing_can_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise TransferError("on a storage")

    monkeypatch.setattr(outputs, "store_opener", lambda _: SimpleNamespace(folder=refuse))
    both = SimpleNamespace(
        runs=lambda **_: [run("one"), run("two")], wanted=SimpleNamespace(stack="dev"), file_of=lambda _: None,
        where=Where({}, None, None, print),
    )  # fmt: skip
    with pytest.raises(TransferError) as told:
        find_outputs(cast(Any, both), "read", history=False)
    assert str(told.value).split("\n") == ["resnet/one: on a storage", *_SAID, "resnet/two: on a storage", *_SAID]


def test_lost_files_are_named_beside_fetched_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = cast(Any, SimpleNamespace(list=lambda _: iter(())))
    fetch_outputs([RunOutput(run(name), empty, f"{name}/", False) for name in ("one", "two")], tmp_path / "to", False)
    said = capsys.readouterr().out.splitlines()
    assert said == ["These runs have left no files so far.", "resnet/one", *_SAID, "resnet/two", *_SAID]


def test_checkpoints_are_shown_where_there_is_no_output(capsys: pytest.CaptureFixture[str]) -> None:
    """All attempts of a run share them, so they are not in the folder of a start."""

    def objects(prefix: str) -> Any:
        there = [StoredObject("line/one/checkpoints/3.pt", 6_700_000, "", "", "2026-05-01T00:00:00Z")]
        return iter(one for one in there if one.name.startswith(prefix))

    store = cast(Any, SimpleNamespace(list=objects, address="oci://runs@ns"))
    show_outputs([RunOutput(run("one"), store, "line/one/1/abc/output/", False)], "text")
    said = capsys.readouterr().out
    assert "  nothing there\n  checkpoints: 1 file, 6.7 MB, in oci://runs@ns/line/one/checkpoints/\n" in said
    assert "`trainyard data get dev line/one/checkpoints/ --to DIR` fetches them" in said
    assert "The same command" not in said, "there is nothing to fetch"


def test_files_on_a_storage_of_the_local_cluster_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is a folder of this machine. Links that tasks left there lead nowhere."""
    (there := tmp_path / "nfs" / "line" / "one" / "1" / "abc" / "output").mkdir(parents=True)
    (there / "model.pt").write_bytes(b"weights")
    (there / "link").symlink_to("/etc/passwd")
    (there / "folder").symlink_to("/etc")
    storage = cast(Any, LocalStorage(tmp_path / "nfs"))
    show_outputs([RunOutput(run("one"), storage, "line/one/1/abc/output/", False)], "text")
    said = capsys.readouterr().out
    assert "model.pt" in said
    assert "1 file, 7 bytes" in said
    assert "--to DIR" not in said
    (tmp_path / "nfs" / "line" / "two").symlink_to(tmp_path)
    assert list(storage.list("line/two/nfs/line/one/1/abc/output/")) == []
