# SPDX-License-Identifier: Apache-2.0
"""A revision of git is read in a temporary folder, which is removed."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from trainyard.review.revisions import CHECKOUT, RevisionError, checkout_revision, working_tree


def git(folder: Path, *words: str) -> str:
    options = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *options, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def stacks(tmp_path: Path) -> Path:
    folder = tmp_path / "team" / "stacks"
    folder.mkdir(parents=True)
    git(folder.parent, "init", "-q")
    (folder / "Pulumi.one.yaml").write_text("config: {}\n")
    git(folder.parent, "add", "-A")
    git(folder.parent, "commit", "-qm", "first")
    return folder


def look_and_fail(stacks: Path) -> None:
    with checkout_revision(stacks, "HEAD") as side:
        there = side.file("Pulumi.one.yaml")
        assert there is not None
        assert there.read_text() == "config: {}\n"
        assert side.file("Pulumi.two.yaml") is None
        assert side.commit == git(stacks, "rev-parse", "--short=12", "HEAD")
        raise KeyError


def test_a_revision_is_read_aside_and_the_working_tree_stays(stacks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aside = stacks.parents[1] / "aside"
    aside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(aside))
    hook = stacks.parent / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {stacks.parents[1]}/ran\n")
    hook.chmod(0o755)
    file = stacks / "Pulumi.one.yaml"
    file.write_text("config: { a: b }\n")
    with pytest.raises(KeyError):
        look_and_fail(stacks)
    assert list(aside.iterdir()) == []
    assert file.read_text() == "config: { a: b }\n"
    assert git(stacks, "worktree", "list").count("\n") == 0
    assert not (stacks.parents[1] / "ran").exists()


def test_a_repository_of_its_own_is_read_by_this_checkouts_code(stacks: Path) -> None:
    with checkout_revision(stacks, "HEAD") as side:
        assert (side.code, side.remark) == (CHECKOUT, "")


@pytest.mark.parametrize(("tracked", "remark"), [(False, ""), (True, "that revision has no `review` yet")])
def test_a_checkout_inside_the_repository_is_older_only_if_it_is_a_part_of_it(
    tracked: bool, remark: str, stacks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = stacks.parent / "trainyard"
    recorder = inside / "trainyard" / "review" / "record.py"
    recorder.parent.mkdir(parents=True)
    recorder.touch()
    git(inside, "init", "-q") if not tracked else git(stacks.parent, "add", "trainyard")
    monkeypatch.setattr("trainyard.review.revisions.CHECKOUT", inside)
    with checkout_revision(stacks, "HEAD") as side:
        assert side.code == inside
        assert side.remark.startswith(remark)
        assert bool(side.remark) == bool(remark)


def test_the_working_tree_says_whether_it_is_changed(stacks: Path) -> None:
    commit = git(stacks, "rev-parse", "--short=12", "HEAD")
    assert working_tree(stacks).commit == commit
    (stacks / "Pulumi.one.yaml").write_text("config: { a: b }\n")
    assert working_tree(stacks).commit == f"{commit}+"


@pytest.mark.parametrize("name", ["nowhere", "--all", "HEAD:stacks", ""])
def test_what_is_no_revision_is_refused_in_words(name: str, stacks: Path) -> None:
    with pytest.raises(RevisionError), checkout_revision(stacks, name):
        pass


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("", "a variable that is not set"),
        ("main...", r"git merge-base HEAD main"),
        ("main..other", r"git merge-base other main"),
        ("HEAD~9", "`git fetch` it first"),
    ],
)
def test_what_is_no_revision_comes_with_its_remedy(name: str, remedy: str, stacks: Path) -> None:
    with pytest.raises(RevisionError, match=remedy), checkout_revision(stacks, name):
        pass


def test_a_shallow_clone_says_how_to_fetch_what_it_lacks(stacks: Path, tmp_path: Path) -> None:
    git(stacks.parent, "clone", "-q", "--depth", "1", f"file://{stacks.parent}", str(tmp_path / "shallow"))
    with (
        pytest.raises(RevisionError, match="git fetch --unshallow"),
        checkout_revision(tmp_path / "shallow" / "stacks", "HEAD~1"),
    ):
        pass


def test_before_the_first_commit_all_is_new(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with checkout_revision(tmp_path / "stacks", "HEAD") as side:
        assert side.file("Pulumi.one.yaml") is None


def test_a_folder_that_the_change_removes_is_still_there_at_the_revision(stacks: Path) -> None:
    git(stacks, "rm", "-rq", ".")
    assert not stacks.exists()
    assert working_tree(stacks).commit
    with checkout_revision(stacks, "HEAD") as side:
        assert side.file("Pulumi.one.yaml")


def test_a_link_that_leads_out_of_the_revision_does_not_show_todays_file_as_the_earlier_one(stacks: Path) -> None:
    shared = stacks.parent / "shared.yaml"
    (stacks / "Pulumi.one.yaml").rename(shared)
    (stacks / "Pulumi.one.yaml").symlink_to(shared)
    (stacks / "Pulumi.two.yaml").symlink_to("../shared.yaml")
    git(stacks.parent, "add", "-A")
    git(stacks.parent, "commit", "-qm", "links")
    with checkout_revision(stacks, "HEAD") as side:
        assert side.file("Pulumi.two.yaml")
        with pytest.raises(RevisionError, match="a link to a file outside of its repository"):
            side.file("Pulumi.one.yaml")


def test_a_folder_of_no_repository_has_no_revisions(tmp_path: Path) -> None:
    assert working_tree(tmp_path).commit == ""
    with pytest.raises(RevisionError, match="not a git repository"), checkout_revision(tmp_path, "HEAD"):
        pass


def test_a_moved_folder_of_stacks_is_found_by_its_files(stacks: Path) -> None:
    moved = stacks.parent / "environments"
    stacks.rename(moved)
    with checkout_revision(moved, "HEAD") as side:
        assert side.moved_from == "stacks"
        assert side.file("Pulumi.one.yaml")
    (moved / "Pulumi.one.yaml").rename(moved / "Pulumi.other.yaml")
    with checkout_revision(moved, "HEAD") as side:
        assert (side.moved_from, side.file("Pulumi.one.yaml")) == ("", None), "no stack of its own was there"


def test_of_two_folders_with_the_same_stacks_none_is_the_moved_one(stacks: Path) -> None:
    again = stacks.parent / "again"
    again.mkdir()
    (again / "Pulumi.one.yaml").write_text("config: {}\n")
    git(stacks.parent, "add", "-A")
    git(stacks.parent, "commit", "-qm", "twice")
    stacks.rename(stacks.parent / "third")
    with checkout_revision(stacks.parent / "third", "HEAD") as side:
        assert side.moved_from == ""


@pytest.fixture
def around(stacks: Path) -> Path:
    """A repository around that of the stacks, which has it as a submodule."""
    folder = stacks.parents[1]
    git(folder, "init", "-q")
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", f"{folder}/team", "sub")
    git(folder, "commit", "-qm", "with a submodule", "sub", ".gitmodules")
    return folder


def test_the_code_of_a_submodule_is_there_at_its_commit_of_then(around: Path) -> None:
    (around / "environments").mkdir()
    (around / "sub/stacks/Pulumi.one.yaml").write_text("config: { changed: true }\n")
    git(around / "sub", "commit", "-qam", "changed")
    with checkout_revision(around / "environments", "HEAD") as side:
        assert side.aside is not None
        assert (side.aside / "sub/stacks/Pulumi.one.yaml").read_text() == "config: {}\n"


def test_a_name_that_means_two_commits_is_refused_with_both(around: Path) -> None:
    inside = around / "sub/stacks"
    then = git(inside, "rev-parse", "HEAD")
    with checkout_revision(inside, "HEAD") as side:
        assert side.file("Pulumi.one.yaml")
    git(inside, "commit", "-q", "--allow-empty", "-m", "only in the submodule")
    now = git(inside, "rev-parse", "HEAD")
    both = f"`HEAD` is {now[:12]} in the submodule sub, and {then[:12]} for it"
    with pytest.raises(RevisionError, match=both), checkout_revision(inside, "HEAD"):
        pass
    with checkout_revision(inside, then) as side:
        assert side.commit == then[:12]
