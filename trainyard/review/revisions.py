# SPDX-License-Identifier: Apache-2.0
"""The two sides of a change: the working tree, and a revision of it in a temporary folder."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from trainyard.engine.isolated import GitError, git_output
from trainyard.review.recorder import RECORD_MODULE

CHECKOUT = Path(__file__).resolve().parents[2]
_RECORDER = Path(*RECORD_MODULE.split(".")).with_suffix(".py")

_OLDER = "that revision has no `review` yet: the current code reads its stack files, so changes of the code do not show"
_STACK_FILES = "Pulumi.*.yaml"
# The mode of a submodule in git's trees.
SUBMODULE_MODE = "160000"


class RevisionError(Exception):
    """A revision cannot be read. The message is for the user."""


@dataclass(frozen=True, slots=True)
class Side:
    """The stack files of a side, and the code that reads them. `commit`: short, or empty. `remark`: for people.
    `aside`: the temporary folder with the whole `revision`; None for the working tree. `moved_from`: the folder of the
    stacks at the revision, from the top of the repository, if it had another place."""

    code: Path
    stacks: Path
    commit: str = ""
    remark: str = ""
    aside: Path | None = None
    revision: str = ""
    moved_from: str = ""

    def file(self, name: str) -> Path | None:
        file = self.stacks / name
        if self.aside and file.is_symlink() and not file.resolve().is_relative_to(self.aside):
            raise RevisionError(
                f"{name} is a link to a file outside of its repository, so git has no earlier version of it"
            )
        return file if file.is_file() else None


def working_tree(stacks: Path) -> Side:
    """The stack files as they are now, committed or not."""
    try:
        commit = git_in_folder(stacks, "rev-parse", "--short=12", "HEAD")
    except RevisionError:
        return Side(CHECKOUT, stacks)
    try:
        changed = git_in_folder(stacks, "status", "--porcelain", "--untracked-files=no")
    except RevisionError:
        changed = ""
    return Side(CHECKOUT, stacks, commit + ("+" if changed else ""))


@contextmanager
def checkout_revision(stacks: Path, name: str) -> Iterator[Side]:
    """The same folder at a revision, in a temporary folder that is always removed."""
    top = top_of_repository(stacks)
    commit = _resolve_commit(stacks, name)
    _refuse_ambiguous_name(top, name, commit)
    with tempfile.TemporaryDirectory(prefix="trainyard-against-") as folder:
        tree = Path(folder, "tree").resolve()
        tree.mkdir()
        _write_tree(top, commit, tree, Path(folder))
        code, remark = _code_of_revision(top, tree)
        then = tree / stacks.resolve().relative_to(top)
        earlier = _earlier_folder(tree, then, stacks)
        moved_from = str(earlier.relative_to(tree)) if earlier != then else ""
        yield Side(code, earlier, commit[:12], remark, tree, commit, moved_from)


def top_of_repository(folder: Path) -> Path:
    return Path(git_in_folder(folder, "rev-parse", "--show-toplevel")).resolve()


def project_of_stacks(stacks: Path) -> Path:
    """The folder from which the stack files take code: their repository, or else their project."""
    try:
        return top_of_repository(stacks)
    except RevisionError:
        folder = stacks.resolve()
        return next((above for above in (folder, *folder.parents) if (above / "Pulumi.yaml").is_file()), folder)


def _write_tree(top: Path, commit: str, tree: Path, indexes: Path) -> None:
    """Writes the files of a commit, and those of its submodules, as far as this clone has their commits."""
    index = {"GIT_INDEX_FILE": str(indexes / f"index-{commit}")}
    git_in_folder(top, "read-tree", commit, variables=index)
    git_in_folder(top, "checkout-index", "--all", "--quiet", f"--prefix={tree}{os.sep}", variables=index)
    for entry in git_in_folder(top, "ls-files", "--stage", "-z", variables=index).split("\0"):
        mode, _, rest = entry.partition(" ")
        if mode == SUBMODULE_MODE:
            inner, path = rest.partition(" ")[0], rest.partition("\t")[2]
            if (top / path / ".git").exists() and not (top / path).is_symlink():
                with suppress(RevisionError):
                    _write_tree(top / path, inner, tree / path, indexes)


def _refuse_ambiguous_name(top: Path, name: str, commit: str) -> None:
    """Stacks in a submodule: `HEAD` is a commit of the submodule, and another one in the repository around it."""
    around = git_in_folder(top, "rev-parse", "--show-superproject-working-tree")
    if not around:
        return
    inside = top.relative_to(Path(around).resolve())
    try:
        meant = git_in_folder(Path(around), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}:{inside}")
    except RevisionError:
        return
    if meant != commit:
        raise RevisionError(
            f"`{name}` is {commit[:12]} in the submodule {inside}, and {meant[:12]} for it in the repository around it:"
            " name one of the two commits"
        )


def _earlier_folder(tree: Path, folder: Path, stacks: Path) -> Path:
    """The folder of the stacks at the revision: another one if that has their files, and this one has none."""
    if next(folder.glob(_STACK_FILES), None):
        return folder
    names = {file.name for file in stacks.glob(_STACK_FILES)}
    shared = Counter(file.parent for file in tree.rglob(_STACK_FILES) if file.name in names)
    most = [place for place, count in shared.items() if count == max(shared.values())]
    return most[0] if len(most) == 1 else folder


def _resolve_commit(stacks: Path, name: str) -> str:
    try:
        return git_in_folder(stacks, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except RevisionError:
        if name == "HEAD" and not git_in_folder(stacks, "rev-list", "--all", "--max-count=1"):
            # A repository without commits, for example in a hook, is compared with an empty tree.
            return git_in_folder(stacks, "hash-object", "-t", "tree", "--stdin")
        raise RevisionError(f"there is no revision `{name}`{_unknown_revision_remedy(stacks, name)}") from None


def _unknown_revision_remedy(stacks: Path, name: str) -> str:
    if not name.strip():
        return ": `--against` got an empty text, perhaps from a variable that is not set"
    if ".." in name:
        first, _, last = name.partition("..")
        ends = f"{last.removeprefix('.') or 'HEAD'} {first or 'HEAD'}"
        return f', as it is a range of them; for where two branches part: --against "$(git merge-base {ends})"'
    if git_in_folder(stacks, "rev-parse", "--is-shallow-repository") == "true":
        return f": this clone is shallow; fetch it first (`git fetch origin {name}`, or all: `git fetch --unshallow`)"
    return "; if it is a branch or a commit of another clone, `git fetch` it first"


def _code_of_revision(top: Path, tree: Path) -> tuple[Path, str]:
    """The code of a revision, and a remark. Each side runs its own code, so that a changed component shows."""
    if not CHECKOUT.is_relative_to(top):
        return CHECKOUT, ""
    own = tree / CHECKOUT.relative_to(top)
    if (own / _RECORDER).is_file():
        return own, ""
    # A clone or a release that lies inside the repository of stack files is no part of its revisions.
    tracked = git_in_folder(top, "ls-files", "--", str(CHECKOUT.relative_to(top) / _RECORDER))
    return CHECKOUT, _OLDER if tracked else ""


def git_in_folder(folder: Path, *words: str, variables: dict[str, str] | None = None) -> str:
    try:
        return git_output(folder, *words, variables=variables)
    except FileNotFoundError:
        raise RevisionError("git is not installed, and `--against` needs it") from None
    except GitError as error:
        raise RevisionError(str(error)) from None
