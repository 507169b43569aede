# SPDX-License-Identifier: Apache-2.0
"""What a node had used up when its processes failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher import used_up
from launcher.exits import FULL_SYMPTOM, MEMORY_SYMPTOM

# As Linux 4.19 and 6.1 write them.
OF_VERSION_1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
OF_VERSION_2 = "low 0\nhigh 0\nmax 412\noom 2\noom_kill 3\noom_group_kill 0\n"


@pytest.mark.parametrize(
    ("name", "content", "count"),
    [
        ("memory.events", OF_VERSION_2, 3),
        ("memory/memory.oom_control", OF_VERSION_1, 3),
        ("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", 0),  # before Linux 4.13
        ("memory.events", "\0", 0),
        ("other", "", 0),
    ],
)
def test_the_kernels_count_is_read_in_both_versions(tmp_path: Path, name: str, content: str, count: int) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(content)
    assert used_up.count_memory_kills(tmp_path) == count


def test_only_what_was_killed_since_the_start_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(used_up, "count_memory_kills", lambda: 3)
    assert used_up.used_up_memory(2) == MEMORY_SYMPTOM
    assert used_up.used_up_memory(3) == ""
    assert used_up.full_folder_words([str(tmp_path), "/nowhere"]) == ""


def test_a_full_file_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc has no blocks at all, and is not full for that."""
    assert used_up.full_folder_words(["/proc"]) == ""
    monkeypatch.setattr(used_up, "_is_full", lambda folder: folder == "/data")
    assert used_up.full_folder_words(["/tmp", "/data"]) == f"/data {FULL_SYMPTOM}"
