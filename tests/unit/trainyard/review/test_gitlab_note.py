# SPDX-License-Identifier: Apache-2.0
"""The note of a merge request, against a server that stands in for GitLab's API."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from trainyard.review.forms import review_json
from trainyard.review.gitlab_note import main
from trainyard.review.model import Opening, Review

MARK = "<!-- trainyard review -->"
SHA = "a" * 40
PLACE = "/api/v4/projects/1/merge_requests/3"
PAGE = re.compile(r"\?per_page=100&page=(\d+)$")


class GitLab(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Any] = {
            "/api/v4/user": {"id": 9},
            PLACE: {"sha": SHA, "target_branch": "main", "changes_count": "1"},
            f"{PLACE}/diffs": [changed_file("policies/rules/budget.py")],
            f"{PLACE}/notes": [{"id": 1, "author": {"id": 8}, "body": f"{MARK}\nof somebody"}],
        }
        self.written: list[tuple[str, str]] = []


class _Handler(BaseHTTPRequestHandler):
    server: GitLab

    def do_GET(self) -> None:
        path, page = PAGE.sub("", self.path), PAGE.search(self.path)
        answer = self.server.answers[path]
        self._answer(answer[(int(page[1]) - 1) * 100 : int(page[1]) * 100] if page else answer)

    def do_POST(self) -> None:
        assert self.headers["PRIVATE-TOKEN"] == "token"
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        self.server.written.append((f"{self.command} {self.path.removeprefix(PLACE)}", body))
        self._answer({})

    do_PUT = do_POST  # noqa: N815 (the name that the server looks for)

    def _answer(self, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def changed_file(path: str) -> dict[str, Any]:
    return {
        "old_path": path, "new_path": path, "new_file": False, "deleted_file": False, "a_mode": "100644",
        "b_mode": "100644",
    }  # fmt: skip


@pytest.fixture
def gitlab(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitLab]:
    server = GitLab()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    variables = {
        "CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}/api/v4", "CI_PROJECT_ID": "1", "REVIEW_TOKEN": "token",
        "CI_MERGE_REQUEST_IID": "3", "CI_COMMIT_SHA": SHA, "TRAINYARD": ".",
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", raising=False)
    yield server
    server.shutdown()
    server.server_close()


def written_review(folder: Path) -> Path:
    file = folder / "review.json"
    review = Review("demo", "Pulumi.demo.yaml", "oci", "changed", commit=SHA[:12], opened=(Opening("![x](y)"),))
    file.write_text(review_json([review], []))
    return file


def test_a_note_is_written_and_the_own_one_found_by_author_and_mark(gitlab: GitLab, tmp_path: Path) -> None:
    file = written_review(tmp_path)
    assert main([str(file)]) == 0
    ((call, body),) = gitlab.written
    assert call == "POST /notes"
    assert body.startswith(f"{MARK}\nCommit {SHA[:12]} into main: reviewed by the code of that commit.")
    assert "- the policies: 1 file changed: policies/rules/budget.py" in body
    assert r"opens: !\[x\](y)" in body
    others = [{"id": number, "author": {"id": 8}, "body": "a word"} for number in range(2, 150)]
    gitlab.answers[f"{PLACE}/notes"] += [*others, {"id": 200, "author": {"id": 9}, "body": f"{MARK}\nolder"}]
    assert main([str(file)]) == 0
    assert gitlab.written[-1] == ("PUT /notes/200", body)
    gitlab.answers[f"{PLACE}/notes"][-1]["body"] = body
    assert main([str(file)]) == 0
    assert len(gitlab.written) == 2, "the same note was written again"


def test_a_missing_review_takes_the_place_of_the_old_one(gitlab: GitLab, tmp_path: Path) -> None:
    gitlab.answers[f"{PLACE}/notes"].append({"id": 2, "author": {"id": 9}, "body": f"{MARK}\nopens 1"})
    (tmp_path / "link.json").symlink_to(written_review(tmp_path))
    for name in ("none.json", "link.json"):
        assert main([str(tmp_path / name)]) == 0
        assert gitlab.written[-1][0] == "PUT /notes/2"
        assert "**no review: the workflow left no review.json**" in gitlab.written[-1][1]


def test_a_pipeline_of_an_older_commit_writes_nothing(gitlab: GitLab, tmp_path: Path) -> None:
    gitlab.answers[PLACE]["sha"] = "b" * 40
    assert main([str(written_review(tmp_path))]) == 0
    assert gitlab.written == []


def test_files_that_gitlab_does_not_list_are_said(gitlab: GitLab, tmp_path: Path) -> None:
    gitlab.answers[PLACE]["changes_count"] = "1000+"
    assert main([str(written_review(tmp_path))]) == 0
    assert "- more files than are listed to this job" in gitlab.written[-1][1]


def test_a_refused_call_is_an_error_without_the_token(
    gitlab: GitLab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_API_V4_URL", "http://127.0.0.1:1/api/v4")
    assert main([str(written_review(tmp_path))]) == 1
    error = capsys.readouterr().err
    assert error.startswith("GitLab did not take the note: ")
    assert "token" not in error
