# SPDX-License-Identifier: Apache-2.0
"""Code folders are compared by files and lines, in bounded time, and what is not compared is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.review import code_changes
from trainyard.review.code_changes import FileChange, compare_code_folders


def _folders(tmp_path: Path, before: dict[str, bytes], after: dict[str, bytes]) -> tuple[Path, Path]:
    for side, files in (("before", before), ("after", after)):
        (tmp_path / side).mkdir()
        for name, content in files.items():
            file = tmp_path / side / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    return tmp_path / "before", tmp_path / "after"


def test_files_are_named_with_the_lines_that_they_gain_and_lose(tmp_path: Path) -> None:
    before, after = _folders(
        tmp_path,
        {"a.py": b"one\ntwo\n", "gone.py": b"x\n", "same.py": b"s", "order.py": b"a\nb\n", "data.bin": b"\0old"},
        {"a.py": b"one\nthree\nfour\n", "new/b.py": b"y\n", "same.py": b"s", "order.py": b"b\na\n", "data.bin": b"\0n"},
    )
    (after / "same.py").chmod(0o755)
    assert {change.name: change.words for change in compare_code_folders(before, after)} == {
        "a.py": "+2 lines -1 line",
        "data.bin": "other bytes, 4 -> 2",
        "gone.py": "1 line",
        "new/b.py": "1 line",
        "order.py": "lines in another order, or with other ends",
        "same.py": "becomes executable",
    }
    assert compare_code_folders(before, before) == ()


def test_a_large_file_is_only_named_and_further_files_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_changes, "MOST_FILES", 2)
    monkeypatch.setattr(code_changes, "MOST_BYTES", 10)
    files = {f"{letter}.py": b"text of more than ten bytes" for letter in "abcde"}
    before, after = _folders(tmp_path, {}, files)
    assert list(compare_code_folders(before, after)) == [
        FileChange("a.py", "27 bytes", is_new=True),
        FileChange("b.py", "27 bytes", is_new=True),
        FileChange("", "3 further files of the code"),
    ]


def test_what_is_too_much_to_read_is_not_taken_for_unchanged(tmp_path: Path) -> None:
    before, after = _folders(tmp_path, {"a": b"1" * 60, "b": b"2" * 60}, {"a": b"1" * 60, "b": b"3" * 60})
    changes = list(compare_code_folders(before, after, budget=100))
    assert changes == [FileChange("", "2 files of the code not compared, as there is too much to read")]
