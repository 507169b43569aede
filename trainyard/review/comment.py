# SPDX-License-Identifier: Apache-2.0
"""The comment of a pull request: a line of the job that is trusted, then a review that another job made.

That other job ran the change's own code, so its JSON is a stranger's text: this module draws it, with the code of the
default branch, and no Markdown of the other job is shown. Standard library only: the job installs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from schemas.convert import structure_model
from schemas.name_suggestions import count_noun
from trainyard.markup import escape_markdown
from trainyard.review.file_kinds import ADDED, FILE_KINDS, MODIFIED, REMOVED, ChangedFile, files_changed, kind_of_file
from trainyard.review.gates import TrippedGate
from trainyard.review.markdown import COMMENT_MARK, review_markdown
from trainyard.review.model import RepositoryReview, Review

REVIEW_FILE = "review.json"
MAXIMUM_REVIEW_BYTES = 16 << 20
_FORMAT = 1
# What `review --format json` writes beside the values (schemas/review.schema.json).
_DERIVED = ("verdict", "decisions")
# Characters for names of files and of the branch. With a review's, they fit into the 65,536 that a comment may have.
_FILES_LIMIT, _BRANCH_LIMIT = 4000, 80
_SUBMODULE = ("", "")


class UnreadableReviewError(Exception):
    """Another job left a review that cannot be shown. The text says why."""


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """A pull request, as its forge describes it. `all_files` is false if the forge did not list all of them."""

    commit: str
    target: str
    files: tuple[ChangedFile, ...]
    all_files: bool = True


def folder_of_code(folder: str) -> str:
    """The prefix of trainyard's code in a repository's paths, from its folder as workflows name it: `.` has none."""
    path = PurePosixPath(folder)
    return "" if path == PurePosixPath() else f"{path}/"


def list_changed_file(before: str, after: str, status: str, is_submodule: bool = False) -> Iterator[ChangedFile]:
    """The file of one entry of a forge's list: two, if it was renamed. `status`: `added`, `removed`, or another."""
    letter = {"added": ADDED, "removed": REMOVED}.get(status, MODIFIED)
    commits = _SUBMODULE if is_submodule else None
    if before and before != after:
        yield ChangedFile(before, REMOVED, commits)
        letter = ADDED
    yield ChangedFile(after, letter, commits)


def comment_on_change(change: ProposedChange, code: str, document: bytes | None, remark: str = "") -> str:
    """The whole comment. `code`: the folder of trainyard's code in the repository, with a slash at its end. `remark`:
    what became of the job that makes reviews, unless it just ended well."""
    review, no_review = "", ""
    try:
        if document is None:
            raise UnreadableReviewError(remark or f"the workflow left no {REVIEW_FILE}")
        review = _drawn_review(document, change.commit)
    except UnreadableReviewError as problem:
        no_review = f"**no review: {escape_markdown(str(problem))}**"
    head = f"Commit {escape_markdown(change.commit[:12])} into {escape_markdown(change.target[:_BRANCH_LIMIT])}"
    reviewed = "reviewed by the code of that commit" + (f"; **{escape_markdown(remark)}**" if remark else "")
    lines = [COMMENT_MARK, f"{head}: {no_review or reviewed}."]
    if touched := list(_touched_kinds(change, code)):
        lines += ["", "**It changes what decides about this review. Read these files first:**", "", *touched]
    if review:
        lines += ["", "What follows is what that code says.", "", review]
    return "\n".join(lines).rstrip() + "\n"


def _touched_kinds(change: ProposedChange, code: str) -> Iterator[str]:
    left = _FILES_LIMIT
    for kind in FILE_KINDS:
        if files := [file for file in change.files if kind_of_file(file, code) is kind]:
            words = escape_markdown(files_changed(kind, files))
            left -= len(words)
            yield f"- {words}" if left >= 0 else f"- {kind.title}: {count_noun(len(files), 'file')} changed"
    if not change.all_files:
        yield "- more files than are listed to this job: they may be of any kind"


def _drawn_review(document: bytes, commit: str) -> str:
    """Markdown of a review's JSON. Raises UnreadableReviewError, whatever the JSON is."""
    if len(document) > MAXIMUM_REVIEW_BYTES:
        raise UnreadableReviewError(f"{REVIEW_FILE} has more than {MAXIMUM_REVIEW_BYTES >> 20} MiB")
    try:
        # Lone surrogates, which JSON can express and no comment can hold, become question marks.
        value = json.loads(json.dumps(json.loads(document), ensure_ascii=False).encode(errors="replace"))
        if value["format"] != _FORMAT:
            raise UnreadableReviewError(f"{REVIEW_FILE} is of another format than the default branch knows")
        reviews = [structure_model(Review, _without_derived(review)) for review in value["reviews"]]
        gates = [structure_model(TrippedGate, gate) for gate in value["gates"]]
        repository = structure_model(RepositoryReview, _without_derived(value.get("repository", {})))
        others = {review.commit for review in reviews if not commit.startswith(review.commit.rstrip("+"))}
        if others or not (reviews or repository.changes):
            raise UnreadableReviewError(f"it reviews {f'commit {min(others)}' if others else 'nothing'}")
        return review_markdown(reviews, gates, repository).removeprefix(COMMENT_MARK).strip()
    except UnreadableReviewError:
        raise
    except Exception as problem:  # of a stranger's text: its depth, numbers, types, lengths
        shown = f"{type(problem).__name__}: {problem}"[:200]
        raise UnreadableReviewError(f"the default branch's trainyard cannot read {REVIEW_FILE} ({shown})") from None


def _without_derived(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in _DERIVED}
