# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs outputs` names lost files under their run, even if it cannot fetch the others."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from components.platform.files import TransferError
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus
from trainyard.cli import outputs
from trainyard.cli.outputs import RunOutput, fetch, find_outputs

_LOST = {"files": 1, "bytes": 2000, "largest": [], "remedy": "write it elsewhere"}
_SAID = ["  not kept of rank 0: 1 file, 2 kB", "  write it elsewhere"]


def run(name: str) -> RunStatus:
    node = NodeStatus(0, NodeRun("main-0", name, "SUCCEEDED"), "main", launcher_status={"lost": _LOST})
    return RunStatus("dev", "resnet", name, 1, datetime(2026, 5, 1, tzinfo=UTC), (node,), folder="b/f")


def test_lost_files_are_named_if_nothing_can_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise TransferError("on a storage")

    monkeypatch.setattr(outputs, "_opener", lambda *_: SimpleNamespace(folder=refuse))
    both = SimpleNamespace(runs=lambda **_: [run("one"), run("two")], wanted=SimpleNamespace(stack="dev"))
    with pytest.raises(TransferError) as told:
        find_outputs(cast(Any, both), "read", history=False)
    assert str(told.value).split("\n") == ["resnet/one: on a storage", *_SAID, "resnet/two: on a storage", *_SAID]


def test_lost_files_are_named_beside_fetched_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = cast(Any, SimpleNamespace(list=lambda _: iter(())))
    fetch([RunOutput(run(name), empty, f"{name}/", False) for name in ("one", "two")], tmp_path / "to", False)
    said = capsys.readouterr().out.splitlines()
    assert said == ["These runs have left no files so far.", "resnet/one", *_SAID, "resnet/two", *_SAID]
