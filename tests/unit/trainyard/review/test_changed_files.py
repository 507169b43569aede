# SPDX-License-Identifier: Apache-2.0
"""Files beside the stacks are said by kind, from git, for trainyard's own repository and for a team's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.review_examples import git
from trainyard.engine.isolated import git_output
from trainyard.review.changed_files import compare_packages, review_repository
from trainyard.review.file_kinds import ChangedFile, kind_of_file
from trainyard.review.model import RepositoryReview
from trainyard.review.revisions import CHECKOUT, checkout_revision

STACK = "stacks/Pulumi.one.yaml"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    write(tmp_path, STACK, "README.md", "stacks/train/train.py")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def write(folder: Path, *names: str, text: str = "a: b\n") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "next")


def reviewed(folder: Path, revision: str = "HEAD") -> RepositoryReview:
    with checkout_revision(folder / "stacks", revision) as before:
        return review_repository(folder / "stacks", before)


def test_stack_files_documents_and_code_of_jobs_decide_nothing(repository: Path) -> None:
    write(repository, STACK, "README.md", "stacks/train/train.py", "docs/page.txt", text="c: d\n")
    assert reviewed(repository) == RepositoryReview((), (), 1)


@pytest.mark.parametrize("is_inside", [False, True])
def test_every_file_of_the_product_has_its_kind(
    is_inside: bool, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the checkout's own folder, also if a team's repository holds it; or in a clone that another one reviews."""
    folder = repository / "vendored" if is_inside else repository
    if is_inside:
        monkeypatch.setattr("trainyard.review.changed_files.CHECKOUT", folder)
    names = {
        "components/program.py": "program", "__main__.py": "program", "catalog/platforms.toml": "program",
        "policies/rules/budget.py": "policies", "provider/plugin.py": "provider", "launcher/entry.py": "launcher",
        "localcloud/hosts.py": "localcloud", "schemas/load.py": "schemas", "trainyard/review/gates.py": "review",
        "trainyard/cli/up.py": "commands", "requirements-aws.txt": "packages", "Makefile": "workflows",
    }  # fmt: skip
    write(folder, *names)
    commit(repository)
    assert reviewed(repository).changes == ()
    write(folder, *names, text="c: d\n")
    found = {Path(file).relative_to("vendored" if is_inside else "."): change.kind
             for change in reviewed(repository).changes for file in change.files}  # fmt: skip
    assert {str(file): kind for file, kind in found.items()} == names


def test_every_file_of_this_checkout_that_runs_has_a_kind() -> None:
    """A new folder of the product is a row, or is named here."""
    names = git_output(CHECKOUT, "ls-files", "-z").rstrip("\0").split("\0")
    other = {name.partition("/")[0] for name in names if kind_of_file(ChangedFile(name, "M"), "").kind == "other"}
    assert other == {"tests", "bench", "stacks", ".gitignore", ".gitattributes", ".editorconfig"}


def test_a_team_s_own_folders_of_these_names_are_not_the_program(repository: Path) -> None:
    write(repository, "policies/rules/budget.py", "launcher/entry.py")
    found = reviewed(repository)
    assert found.changes == ()


def test_untracked_removed_and_ignored_files(repository: Path) -> None:
    write(repository, ".gitignore", text="ignored*\n")
    write(repository, ".github/workflows/old.yml")
    commit(repository)
    write(repository, ".github/workflows/new.yml", "ignoredrequirements.txt", "stray.txt")
    (repository / ".github/workflows/old.yml").unlink()
    (change,) = reviewed(repository).changes
    assert (
        change.words == "workflows: 2 files changed: removed .github/workflows/old.yml, added .github/workflows/new.yml"
    )


def test_project_files_are_compared_by_key_and_only_trainyards(repository: Path) -> None:
    write(repository, "Pulumi.yaml", text="name: trainyard\nmain: ../trainyard\nruntime: {name: python}\n")
    write(repository, "other/Pulumi.yaml", text="name: website\nmain: a\n")
    commit(repository)
    write(repository, "Pulumi.yaml", text="# moved\nruntime:\n  name: python\nname: trainyard\nmain: ../trainyard\n")
    write(repository, "other/Pulumi.yaml", text="name: website\nmain: b\n")
    assert reviewed(repository).changes == ()
    write(repository, "Pulumi.yaml", text="name: trainyard\nmain: ../fork\nruntime: {name: python}\n")
    assert [change.words for change in reviewed(repository).changes] == ["main: ../trainyard -> ../fork"]
    write(repository, "Pulumi.yaml", text="{")
    assert "cannot be read" in reviewed(repository).changes[0].words


def test_names_of_files_that_are_no_text_are_written_in_words(repository: Path) -> None:
    folder = repository / ".github/workflows"
    folder.mkdir(parents=True)
    (folder / "a\udcff\n.yml").write_text("")
    (change,) = reviewed(repository).changes
    assert "\\udcff" in change.words
    change.words.encode()


def test_packages_are_compared_by_name_version_hash_and_option() -> None:
    before = "numpy==1.0 --hash=sha256:aa\npip==1 \\\n  --hash=sha256:bb  # a comment\nsame==1\n--no-index\n"
    after = "numpy==2.0 --hash=sha256:cc\npip==1 --hash=sha256:dd\nsame==1 # other\n-i https://u:secret@evil.example\n"
    assert list(compare_packages(before, after)) == [
        "--no-index removed",
        "-i https://…@evil.example added",
        "numpy: ==1.0 -> ==2.0",
        "pip ==1: other hashes of the same version",
    ]


def test_before_the_first_commit_every_file_is_added(tmp_path: Path) -> None:
    write(tmp_path, STACK, ".gitlab-ci.yml")
    git(tmp_path, "init", "-q")
    (change,) = reviewed(tmp_path).changes
    assert change.words == "workflows: 1 file changed: added .gitlab-ci.yml"


def test_a_submodule_at_another_commit_is_named_with_both_and_cannot_hide(repository: Path) -> None:
    inner = repository / "stacks/train"
    git(repository, "rm", "-rq", "--cached", "stacks/train")
    git(inner, "init", "-q")
    commit(inner)
    write(repository, ".gitmodules", text='[submodule "t"]\n path = stacks/train\n url = ./t\n ignore = all\n')
    commit(repository)
    assert reviewed(repository).changes == ()
    write(inner, "train.py", text="print()\n")
    commit(inner)
    (change,) = reviewed(repository).changes
    assert change.kind == "submodules"
    assert "stacks/train: " in change.details[1]
    assert change.details[1].count(" -> ") == 1


@pytest.mark.parametrize(
    ("before", "after", "is_said"),
    [
        ("numpy==1.0\nrich==2.0\n", "# Why\nrich==2.0\n\nnumpy==1.0  # old\n", False),
        ("numpy==1.0\nrich==2.0\n", "numpy==1.0\n", True),
        ("numpy==1.0\n", "numpy==1.0\nnumpy==1.0\n", True),
        (
            "--index-url https://one\n--index-url https://two\n",
            "--index-url https://two\n--index-url https://one\n",
            True,
        ),
        ("--index-url https://me:one@two\n", "--index-url https://me:two@two\n", True),
    ],
)
def test_packages_in_another_order_are_the_same(before: str, after: str, is_said: bool, repository: Path) -> None:
    write(repository, "requirements.txt", text=before)
    commit(repository)
    write(repository, "requirements.txt", text=after)
    assert bool(reviewed(repository).changes) == is_said


def test_a_link_in_place_of_a_requirements_file_is_said(repository: Path) -> None:
    write(repository, "requirements.txt", "other.txt", text="numpy==1.0\n")
    commit(repository)
    (repository / "requirements.txt").unlink()
    (repository / "requirements.txt").symlink_to("other.txt")
    assert reviewed(repository).changes
