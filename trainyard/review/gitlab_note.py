# SPDX-License-Identifier: Apache-2.0
"""`python -m trainyard.review.gitlab_note FILE.json`: brings the note of a merge request up to date.

Run by a job of GitLab (docs/review.md) with the code of a release, not of the merge request. It always writes: without
a review, why there is none. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from launcher.escaping import terminal_lines
from trainyard.review.comment import (
    MAXIMUM_REVIEW_BYTES,
    ProposedChange,
    comment_on_change,
    folder_of_code,
    list_changed_file,
)
from trainyard.review.markdown import COMMENT_MARK

_PAGE = 100
_SECONDS = 60
_SUBMODULE_MODE = "160000"


def call_gitlab(path: str, method: str = "GET", body: Mapping[str, Any] | None = None) -> Any:
    url = f"{os.environ['CI_API_V4_URL']}/{path}"
    headers = {"PRIVATE-TOKEN": os.environ["REVIEW_TOKEN"], "Content-Type": "application/json"}
    request = Request(url, json.dumps(body).encode() if body is not None else None, headers, method=method)
    with urlopen(request, timeout=_SECONDS) as answer:
        return json.load(answer)


def list_from_gitlab(path: str) -> list[Any]:
    found: list[Any] = []
    for number in range(1, 1 << 16):
        page = call_gitlab(f"{path}?per_page={_PAGE}&page={number}")
        found += page
        if len(page) < _PAGE:
            break
    return found


def update_note(file: Path) -> None:
    """Writes the note of this pipeline's merge request."""
    project = f"projects/{os.environ['CI_PROJECT_ID']}"
    place = f"{project}/merge_requests/{int(os.environ['CI_MERGE_REQUEST_IID'])}"
    request = call_gitlab(place)
    # In a pipeline of merged results CI_COMMIT_SHA is that of the merge.
    commit = os.environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or os.environ["CI_COMMIT_SHA"]
    if request["sha"] != commit:
        return  # the pipeline of the newer commit writes
    entries = list_from_gitlab(f"{place}/diffs")
    files = [
        changed
        for entry in entries
        for changed in list_changed_file(
            entry["old_path"],
            entry["new_path"],
            "added" if entry["new_file"] else "removed" if entry["deleted_file"] else "",
            _SUBMODULE_MODE in (entry["a_mode"], entry["b_mode"]),
        )
    ]
    # `1000+` if GitLab counts no further.
    count = str(request.get("changes_count") or 0)
    change = ProposedChange(
        commit, request["target_branch"], tuple(files), count.isdigit() and len(entries) >= int(count)
    )
    text = comment_on_change(change, folder_of_code(os.environ.get("TRAINYARD", ".")), _read_review(file))
    author = call_gitlab("user")["id"]
    own = (
        note
        for note in list_from_gitlab(f"{place}/notes")
        if note["author"]["id"] == author and note["body"].startswith(COMMENT_MARK)
    )
    old = next(own, None)
    if old is None:
        call_gitlab(f"{place}/notes", "POST", {"body": text})
    elif old["body"].strip() != text.strip():
        call_gitlab(f"{place}/notes/{int(old['id'])}", "PUT", {"body": text})


def _read_review(file: Path) -> bytes | None:
    """The review that another job left. A link of a stranger's is not followed."""
    if file.is_symlink() or not file.is_file():
        return None
    with file.open("rb") as opened:
        return opened.read(MAXIMUM_REVIEW_BYTES + 1)


def main(arguments: list[str]) -> int:
    try:
        update_note(Path(arguments[0]))
    except (HTTPError, OSError) as problem:
        sys.stderr.write(terminal_lines(f"GitLab did not take the note: {problem}") + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
