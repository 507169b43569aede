# SPDX-License-Identifier: Apache-2.0
"""The globs of `keep:`, and folders that become links while the launcher walks through them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launcher.code import Patterns
from launcher.losses import Loss, describe_losses
from launcher.printing import LinePrinter
from launcher.stores import Folder, folder_opener
from launcher.sync import CHANGED, Sync, stamp_of_status
from launcher.walking import Budget, open_file, regular_files


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("model.pt", ["model.pt", "model.pt/part"], ["a/model.pt", "model.ptx"]),
        ("*.pt", ["a.pt", ".pt"], ["a/b.pt", "a.pth"]),
        ("**/*.pt", ["a.pt", "a/b.pt", "a/b/c.pt"], ["a.pth"]),
        ("runs/**", ["runs/a", "runs/a/b"], ["run/a"]),
        ("runs/", ["runs/a", "runs/a/b"], ["a/runs/b"]),
        ("./a//b", ["a/b"], ["b"]),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["a/b", "z"]),
        ("[ab]?.csv", ["a1.csv"], ["c1.csv", "a12.csv"]),
        ("**", ["a", "a/b"], []),
        ("/".join(["**", "a"] * 40), ["/".join("a" * 40)], ["/".join("a" * 39), "/".join("a" * 39 + "b" * 200)]),
    ],
)
def test_globs_mean_what_people_expect(pattern: str, names: list[str], others: list[str]) -> None:
    patterns = Patterns.of([pattern])
    assert [name for name in names if not patterns.match(name)] == []
    assert [name for name in others if patterns.match(name)] == []


def test_without_globs_no_file_matches() -> None:
    assert not Patterns.of([]).match("a")
    assert not Patterns.of(["", "/", "."]).match("a")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A folder that a script may change, and one beside it."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside / "results", outside):
        folder.mkdir(parents=True)
        (folder / "file").write_text(folder.name)
    return inside, outside


def swapped(inside: Path, outside: Path) -> None:
    (inside / "results").rename(inside / "moved")
    (inside / "results").symlink_to(outside)


def test_a_folder_that_becomes_a_link_is_not_walked(folders: tuple[Path, Path]) -> None:
    """The folder becomes a link after its parent was listed, and before it is opened."""
    walk = regular_files(str(folders[0]), lambda *_: True, Budget(100, 10))
    (folders[0] / "first").write_text("x")
    assert next(walk)[0] == "first"
    swapped(*folders)
    assert list(walk) == []


def test_nothing_is_opened_through_a_link(folders: tuple[Path, Path]) -> None:
    inside, outside = folders
    os.close(open_file(str(inside), "results/file"))
    swapped(inside, outside)
    os.mkfifo(inside / "pipe")
    (inside / "link").symlink_to(outside / "file")
    for name in ("results/file", "link", "pipe", "../outside/file/x", "nowhere"):
        with pytest.raises(OSError, match=r"Not a directory|symbolic links|No such file"):
            open_file(str(inside), name)


def test_an_output_file_that_moved_behind_a_link_is_not_uploaded(folders: tuple[Path, Path], tmp_path: Path) -> None:
    store: Folder = folder_opener({}, LinePrinter())((tmp_path / "store").as_uri())
    sync = Sync(folders[0], store, "output", LinePrinter())
    stamp = stamp_of_status((folders[0] / "results" / "file").stat())
    assert sync.put("results/file", stamp) == ""
    swapped(*folders)
    os.utime(folders[1] / "file", ns=(stamp[1], stamp[1]))
    assert sync.put("results/file", stamp) == CHANGED
    assert [item.name for item in store.list("")] == ["output/results/file"]


def test_a_walk_ends_with_its_budget(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).touch()
    budget = Budget(5, 10)
    assert len(list(regular_files(str(tmp_path), lambda *_: True, budget))) == 5
    assert budget.cut


def test_the_suggested_glob_matches_the_file() -> None:
    *_, hint = describe_losses([Loss("a[1]*.bin", 1, "why", inside=True)], bucket=True)
    assert 'give the job `keep: ["a[[]1][*].bin"]`' in hint
    assert Patterns.of(["a[[]1][*].bin"]).match("a[1]*.bin")
    *_, hint = describe_losses([Loss("data/", 1, "why", inside=True, files=2)], bucket=True)
    assert '`keep: ["data/**"]`' in hint
    assert list(describe_losses([], bucket=True)) == []
