# SPDX-License-Identifier: Apache-2.0
"""`python -m trainyard.review.github_comment`: brings the comments of pull requests up to date, with `gh`.

Run by .github/workflows/review-comment.yml with the code of the default branch. It looks at what is, not at what
happened: a pull request's newest commit, and the newest run of the review's workflow for it. So the order of events
does not matter, and a commit without a run is noticed. Standard library only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

from launcher.escaping import terminal_lines
from trainyard.review.comment import (
    MAXIMUM_REVIEW_BYTES,
    REVIEW_FILE,
    ProposedChange,
    comment_on_change,
    folder_of_code,
    list_changed_file,
)
from trainyard.review.markdown import COMMENT_MARK

_WORKFLOW = "review.yml"
_ARTIFACT = "review"
_AUTHOR = "github-actions[bot]"
_PAGE = 100
_STATUS_OF = {"added": "added", "copied": "added", "removed": "removed"}


class GitHubError(Exception):
    """GitHub refused a call. The text is what `gh` says."""


@dataclass(frozen=True, slots=True)
class GitHubRepository:
    """A repository's API. `code`: the folder of trainyard's code in it."""

    name: str
    code: str

    def call(self, path: str, *options: str, body: Mapping[str, Any] | None = None) -> bytes:
        given = ("--input", "-") if body is not None else ()
        command = ["gh", "api", *options, f"repos/{self.name}/{path}", *given]
        text = json.dumps(body).encode() if body is not None else None
        done = subprocess.run(command, input=text, capture_output=True, check=False)
        if done.returncode:
            raise GitHubError(f"{path}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def list_all(self, path: str, key: str = "", **query: str) -> list[Any]:
        """All pages of a list. `key`: where a page has it."""
        found: list[Any] = []
        for number in range(1, 1 << 16):
            page = json.loads(self.call(f"{path}?{urlencode({**query, 'per_page': _PAGE, 'page': number})}"))
            items = page[key] if key else page
            found += items
            if len(items) < _PAGE:
                break
        return found


def update_comment(repository: GitHubRepository, pull: Mapping[str, Any], pulls: Sequence[Mapping[str, Any]]) -> None:
    """Writes the comment of one of these open pull requests, unless it says the same already."""
    document, remark = _review_of_pull(repository, pull, pulls)
    number = int(pull["number"])
    listed = repository.list_all(f"pulls/{number}/files")
    files = [
        file
        for entry in listed
        for file in list_changed_file(
            entry.get("previous_filename", ""), entry["filename"], _STATUS_OF.get(entry["status"], "")
        )
    ]
    counted = json.loads(repository.call(f"pulls/{number}"))["changed_files"]
    change = ProposedChange(pull["head"]["sha"], pull["base"]["ref"], tuple(files), len(listed) >= counted)
    text = comment_on_change(change, repository.code, document, remark)
    own = (
        comment
        for comment in repository.list_all(f"issues/{number}/comments")
        if comment["user"] and comment["user"]["login"] == _AUTHOR and comment["body"].startswith(COMMENT_MARK)
    )
    old = next(own, None)
    if old is None:
        repository.call(f"issues/{number}/comments", "--method", "POST", body={"body": text})
    elif old["body"].replace("\r\n", "\n").strip() != text.strip():
        repository.call(f"issues/comments/{int(old['id'])}", "--method", "PATCH", body={"body": text})


def _review_of_pull(
    repository: GitHubRepository, pull: Mapping[str, Any], pulls: Sequence[Mapping[str, Any]]
) -> tuple[bytes | None, str]:
    """The review's JSON, and what became of its run, unless that ended well."""
    runs = [
        run
        for run in repository.list_all(
            f"actions/workflows/{_WORKFLOW}/runs", "workflow_runs", event="pull_request", head_sha=pull["head"]["sha"]
        )
        if _head_of(run) == _head_of(pull)
    ]
    # The run's title, which the pull request's own workflow writes, is asked only where its commit cannot decide.
    if sum(_head_of(other) == _head_of(pull) for other in pulls) > 1:
        runs = [run for run in runs if run["display_title"] == f"review of pull request {pull['number']}"]
    if not runs:
        return None, f"no run of {_WORKFLOW} is of this commit"
    run = max(runs, key=lambda run: int(run["id"]))
    if run["status"] != "completed":
        return None, "it is being made"
    # A run fails if a gate trips, too: then it has left a review.
    remark = "" if run["conclusion"] == "success" else f"the run of {_WORKFLOW} ended as {run['conclusion']}"
    for artifact in repository.list_all(f"actions/runs/{int(run['id'])}/artifacts", "artifacts"):
        if artifact["name"] == _ARTIFACT and not artifact["expired"]:
            if artifact["size_in_bytes"] > MAXIMUM_REVIEW_BYTES:
                return None, "what the workflow left is too large"
            return _read_archive(repository.call(f"actions/artifacts/{int(artifact['id'])}/zip")), remark
    return None, remark


def _read_archive(archive: bytes) -> bytes | None:
    """The review's JSON in an archive. Nothing is unpacked, so its names and links lead nowhere."""
    try:
        with zipfile.ZipFile(BytesIO(archive)) as opened, opened.open(REVIEW_FILE) as file:
            return file.read(MAXIMUM_REVIEW_BYTES + 1)
    except Exception:  # a stranger's archive
        return None


def _head_of(value: Mapping[str, Any]) -> tuple[str, str, str]:
    """Repository, branch and commit of a pull request, or of a run."""
    if "head" in value:
        head = value["head"]
        return (head["repo"] or {}).get("full_name", ""), head["ref"], head["sha"]
    return (value["head_repository"] or {}).get("full_name", ""), value["head_branch"], value["head_sha"]


def _chosen_pulls(repository: GitHubRepository, head: str) -> Iterator[Mapping[str, Any]]:
    """Open pull requests of a head, `owner:branch`. All without one: a clock, not a run, started this."""
    query = {"head": head} if head.strip(":") else {}
    yield from repository.list_all("pulls", state="open", **query)


def main() -> int:
    repository = GitHubRepository(os.environ["REPO"], folder_of_code(os.environ.get("TRAINYARD", ".")))
    pulls = list(_chosen_pulls(repository, os.environ.get("HEAD", "")))
    failed = 0
    for pull in pulls:
        try:
            update_comment(repository, pull, pulls)
        except GitHubError as problem:  # the others get theirs
            sys.stderr.write(terminal_lines(f"pull request {pull['number']}: {problem}") + "\n")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
