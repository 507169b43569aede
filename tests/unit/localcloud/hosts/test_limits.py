# SPDX-License-Identifier: Apache-2.0
"""Control groups are removed with the last node in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcloud.hosts import limits
from localcloud.hosts.limits import ControlGroups


def made(place: Path) -> ControlGroups:
    """Folders like the kernel's: none can be removed while it has content."""
    found = ControlGroups({name: str(place / name) for name in ("memory", "pids")})
    for folder in found.folders.values():
        Path(folder).mkdir()
    return found


def test_the_shared_group_stays_while_another_node_is_in_it(tmp_path: Path) -> None:
    shared = made(tmp_path)
    first, second = shared.child("first"), shared.child("second")
    for one in (first, second):
        for folder in one.folders.values():
            Path(folder).mkdir()
    first.remove()
    shared.remove()
    assert sorted(path.name for path in tmp_path.glob("*/*")) == ["second", "second"]
    second.remove()
    shared.remove()
    assert not list(tmp_path.iterdir())


def test_a_group_that_cannot_be_removed_keeps_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_REMOVED_SECONDS", 0.0)
    for busy in ("memory", "pids"):
        shared = made(tmp_path)
        held = Path(shared.folders[busy], "held")
        held.touch()
        shared.remove()
        assert [path.name for path in tmp_path.iterdir()] == [busy]
        held.unlink()
        shared.remove()
