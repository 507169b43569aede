# SPDX-License-Identifier: Apache-2.0
"""The workflows that show a review: what they may do, and their shell steps, executed against a stand-in for `gh`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from tests.support import github_stand_in
from tests.support.programs import require_program
from trainyard.review import github_comment
from trainyard.review.comment import ProposedChange, comment_on_change
from trainyard.review.file_kinds import ChangedFile
from trainyard.review.forms import review_json
from trainyard.review.model import Change, Hanging, Opening, Review

FOLDER = Path(__file__).parents[2] / ".github" / "workflows"
BOT, MARK = "github-actions[bot]", "<!-- trainyard review -->"
SHA, BASE_BRANCH = "0123456789ab" + 28 * "c", "main"


def workflow(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text("utf-8"))
    return document


class GitHub:
    """A repository behind a stand-in for `gh` (tests/support/github_stand_in.py), with a pull request of a fork."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state: dict[str, Any] = {"calls": []}
        self.state["pulls"] = [github_pull(7)]
        self.state["runs"] = [github_run(70)]
        self.state["artifacts"] = {"70": review_archive(folder, review_document())}
        self.state["files"] = {"7": [{"filename": "stacks/Pulumi.demo.yaml", "status": "modified"}]}
        self.state["comments"] = {"7": [{"id": 1, "user": {"login": "somebody"}, "body": MARK}]}

    def comment(self, **variables: str) -> None:
        """What the step of review-comment.yml does, in this process."""
        with patch.dict(os.environ, self._prepared() | variables):
            assert github_comment.main() == 0
        self.state = json.loads((self.folder / "state.json").read_text())

    def comment_by_step(self) -> None:
        """Executes the step. Its Python has the standard library only, as that of a new machine."""
        require_program("bash")
        step = workflow("review-comment.yml")["jobs"]["comment"]["steps"][-1]
        command = ["bash", "-eo", "pipefail", "-c", step["run"]]
        subprocess.run(command, cwd=FOLDER.parents[1], env=self._prepared(), check=True)
        self.state = json.loads((self.folder / "state.json").read_text())

    def _prepared(self) -> dict[str, str]:
        """The variables of the step, after the state is written for the stand-in."""
        programs, state = self.folder / "bin", self.folder / "state.json"
        programs.mkdir(exist_ok=True)
        state.write_text(json.dumps(self.state))
        for name, command in (("gh", f"-I -S {github_stand_in.__file__} {state}"), ("python3", "-S")):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n')
            program.chmod(0o755)
        return {
            "PATH": f"{programs}:{os.environ['PATH']}", "GH_TOKEN": "t", "REPO": "a/b", "OWNER": "fork",
            "BRANCH": "topic", "HEAD": "fork:topic", "TRAINYARD": ".",
        }  # fmt: skip

    @property
    def calls(self) -> list[str]:
        calls: list[str] = self.state["calls"]
        return calls

    def shown(self, number: int = 7) -> str:
        """The one comment of the job."""
        (body,) = (
            comment["body"]
            for comment in self.state["comments"].get(str(number), [])
            if comment["user"]["login"] == BOT
        )
        return str(body)


def github_pull(number: int, **other: str) -> dict[str, Any]:
    head = {"sha": SHA, "ref": "topic", "repo": {"full_name": "fork/b"}, **other}
    return {"number": number, "head": head, "base": {"ref": BASE_BRANCH}}


def github_run(number: int, **other: Any) -> dict[str, Any]:
    return {
        "id": number, "event": "pull_request", "head_sha": SHA, "head_branch": "topic", "status": "completed",
        "head_repository": {"full_name": "fork/b"}, "conclusion": "success", "display_title": "", **other,
    }  # fmt: skip


def review_document(**parts: Any) -> dict[str, Any]:
    """What `review --format json` writes of a stack that opens something."""
    opened = Opening("TCP 443 out of the subnet", outside=True)
    review = Review("demo", "stacks/Pulumi.demo.yaml", "oci", "changed", commit=SHA[:12], opened=(opened,))
    document: dict[str, Any] = json.loads(review_json([replace(review, **parts)], []))
    return document


def review_archive(folder: Path, content: Any, name: str = "review.json") -> str:
    """A zip file with a review."""
    folder.mkdir(exist_ok=True)
    number = len(list(folder.glob("*.zip")))
    with zipfile.ZipFile(folder / f"{number}.zip", "w") as archive:
        archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return str(folder / f"{number}.zip")


def test_a_review_becomes_a_comment_and_the_next_push_updates_it(tmp_path: Path) -> None:
    github = GitHub(tmp_path)
    github.comment_by_step()
    assert github.calls == ["POST issues/7/comments"]
    assert github.shown().startswith(f"{MARK}\nCommit {SHA[:12]} into main: reviewed by the code of that commit.\n")
    assert "**demo: opens 1 (1 to or from outside)**" in github.shown()
    assert github.shown().count(MARK) == 1
    github.comment()
    assert len(github.calls) == 1, "the same comment was written again"
    github.state["artifacts"]["70"] = review_archive(tmp_path, review_document(opened=()))
    github.comment()
    assert github.calls[1:] == ["PATCH issues/comments/100"]
    assert "demo: nothing to decide" in github.shown()


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"status": "queued", "conclusion": None}, "**no review: it is being made**"),
        ({"conclusion": "skipped"}, "**no review: the run of review.yml ended as skipped**"),
        ({"conclusion": "failure"}, "**no review: the run of review.yml ended as failure**"),
        ({}, "**no review: the workflow left no review.json**"),
        ({"head_sha": "older"}, "**no review: no run of review.yml is of this commit**"),
        ({"head_repository": {"full_name": "other/b"}}, "**no review: no run of review.yml is of this commit**"),
    ],
)
def test_a_commit_without_a_review_is_said_also_at_the_first_push(
    run: dict[str, Any], words: str, tmp_path: Path
) -> None:
    github = GitHub(tmp_path)
    github.state["runs"] = [github_run(70, **run)]
    github.state["artifacts"] = {}
    github.comment()
    assert words in github.shown()


def test_a_review_of_an_older_commit_is_not_shown(tmp_path: Path) -> None:
    github = GitHub(tmp_path)
    github.comment()
    assert "opens 1" in github.shown()
    github.state["pulls"] = [github_pull(7, sha="f" * 40)]
    github.comment()
    assert f"Commit {12 * 'f'} into main: **no review: no run of review.yml is of this commit**." in github.shown()
    assert "opens 1" not in github.shown()


def test_the_clock_finds_a_commit_for_which_no_run_began(tmp_path: Path) -> None:
    github = GitHub(tmp_path)
    github.state |= {"runs": [], "files": {"7": [{"filename": ".github/workflows/review.yml", "status": "removed"}]}}
    github.comment(HEAD=":")
    assert "no run of review.yml is of this commit" in github.shown()
    assert "- workflows: 1 file changed: removed .github/workflows/review.yml" in github.shown()


def test_a_review_that_trips_a_gate_is_shown(tmp_path: Path) -> None:
    github = GitHub(tmp_path)
    github.state["runs"] = [github_run(69), github_run(70, conclusion="failure")]
    github.comment()
    assert "reviewed by the code of that commit; **the run of review.yml ended as failure**." in github.shown()
    assert "opens 1" in github.shown()


def test_two_pull_requests_of_one_branch_have_their_own_reviews(tmp_path: Path) -> None:
    github = GitHub(tmp_path)
    github.state["pulls"] = [github_pull(7), github_pull(8)]
    titles = {70: "review of pull request 8", 71: "review of pull request 7", 72: "review of pull request 9"}
    github.state["runs"] = [github_run(number, display_title=title) for number, title in titles.items()]
    for number, opened in ((70, "for eight"), (71, "for seven"), (72, "for nobody")):
        document = review_document(opened=(Opening(opened),))
        github.state["artifacts"][str(number)] = review_archive(tmp_path, document)
    github.comment()
    assert "opens: for seven" in github.shown(7)
    assert "opens: for eight" in github.shown(8)
    github.state["runs"] = [github_run(70, display_title="x"), github_run(71, display_title="x")]
    github.comment()
    assert "no review: no run of review.yml is of this commit" in github.shown(8)
    assert workflow("review.yml")["run-name"] == "review of pull request ${{ github.event.pull_request.number }}"


def test_files_that_decide_about_the_review_are_listed_from_all_pages(tmp_path: Path) -> None:
    github = GitHub(tmp_path)
    files = [{"filename": f"stacks/{number}.yaml", "status": "added"} for number in range(250)]
    files[120] = {"filename": "docs/pack.md", "previous_filename": "policies/rules/budget.py", "status": "renamed"}
    files[240] = {"filename": "trainyard/review/gates.py", "status": "modified"}
    github.state["files"]["7"] = files
    github.state["artifacts"]["70"] = review_archive(tmp_path, review_document(opened=()))
    github.comment()
    first = github.shown().partition("What follows")[0]
    assert "- the review: 1 file changed: trainyard/review/gates.py" in first
    assert "- the policies: 1 file changed: removed policies/rules/budget.py" in first
    github.state["changed_files"] = 4000
    github.comment()
    assert "- more files than are listed to this job: they may be of any kind" in github.shown()


ACTIVE = "![p](https://evil.example) @org/security #1 GH-1 <img src=x> [a](https://evil.example)\n/lgtm\n\u0000\ud800"


def test_a_hostile_review_becomes_text(tmp_path: Path) -> None:
    github = GitHub(tmp_path)
    opened, change = Opening(ACTIVE, outside=True), Change("deleted", ACTIVE, ACTIVE, ACTIVE, (ACTIVE,))
    document = review_document(opened=(opened,), changes=(change,), warnings=(ACTIVE,), against=ACTIVE, on=ACTIVE)
    document["reviews"][0]["verdict"] = ACTIVE
    github.state["artifacts"]["70"] = review_archive(tmp_path, document)
    github.comment()
    shown = github.shown()
    assert "evil.example" in shown
    for active in ("https://", "@org", "#1 ", "GH-1", "<img", "\n/lgtm", "\n /lgtm", "\0"):
        assert active not in shown, active
    assert not re.search(r"(?<!\\)!\[|(?<!\\)\]\(", shown)
    assert re.findall(r"<[^>]*>", shown) == [MARK]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "cannot read review.json"),
        (b'{"format": 1, "reviews": [], "gates": []}\0', "cannot read review.json"),
        (b'{"format": 1, "reviews": [], "gates": []}', "it reviews nothing"),
        (b'{"format": 2}', "of another format"),
        (b"[" * 100_000, "cannot read review.json"),
        (b"9" * 100_000, "cannot read review.json"),
        (json.dumps(review_document(commit="ffffffffffff")).encode(), "it reviews commit ffffffffffff"),
        (json.dumps(review_document(hanging=(Hanging("job", (), "", ""),))).encode(), "cannot read review.json"),  # type: ignore[arg-type]
        (json.dumps(review_document() | {"reviews": [{"stack": "demo", "invented": 1}]}).encode(), "cannot read"),
    ],
)
def test_a_review_that_cannot_be_read_is_said(content: bytes, words: str, tmp_path: Path) -> None:
    github = GitHub(tmp_path)
    github.state["artifacts"]["70"] = review_archive(tmp_path, content)
    github.comment()
    assert "no review:" in github.shown()
    assert words in github.shown()


def test_an_archive_leads_nowhere(tmp_path: Path) -> None:
    github = GitHub(tmp_path)
    github.state["artifacts"]["70"] = review_archive(tmp_path, b"x", "../../review.json")
    github.comment()
    assert "the workflow left no review.json" in github.shown()
    (tmp_path / "no.zip").write_bytes(b"no archive")
    github.state["artifacts"]["70"] = str(tmp_path / "no.zip")
    github.comment()
    assert "the workflow left no review.json" in github.shown()


def test_the_longest_names_leave_room_for_the_review() -> None:
    files = tuple(
        ChangedFile(f"{folder}/{'@' * 200}{number}", "M")
        for folder in (".github", "policies", "trainyard/review", "catalog", "provider", "launcher")
        for number in range(20)
    )
    document = json.dumps(review_document(opened=tuple(Opening(f"{n}" + 90 * "@") for n in range(72)))).encode()
    text = comment_on_change(ProposedChange(SHA, "@" * 250, files), "", document, "@" * 20)
    assert 50_000 < len(text) < 65_536
    assert "- the policies: 20 files changed" in text


@pytest.mark.parametrize("trainyard", [".", "trainyard"])
def test_the_step_that_reviews_compares_with_where_the_branch_began(trainyard: str, tmp_path: Path) -> None:
    program = tmp_path / trainyard / ".venv" / "bin" / "trainyard"
    program.parent.mkdir(parents=True)
    program.write_text(
        '#!/bin/sh\necho "$*" >arguments\nfor word; do case "$word" in *.md) echo said >"$word";; esac; done\n'
    )
    program.chmod(0o755)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "began"], ["tag", "began"],
                  ["commit", "-q", "--allow-empty", "-m", "base"], ["tag", "base"], ["checkout", "-q", "began"],
                  ["commit", "-q", "--allow-empty", "-m", "topic"]):  # fmt: skip
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    (step,) = (one for one in workflow("review.yml")["jobs"]["review"]["steps"] if one.get("name") == "Review")
    summary = str(tmp_path / "summary")
    variables = {"PATH": os.environ["PATH"], "BASE": "base", "GITHUB_STEP_SUMMARY": summary, "TRAINYARD": trainyard}
    subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], cwd=tmp_path, env=variables, check=True)
    began = subprocess.run(["git", "rev-parse", "began"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert (tmp_path / "arguments").read_text().startswith(f"review --all --against {began.stdout.strip()} --output")
    assert (tmp_path / "summary").read_text() == "said\n"


@pytest.mark.parametrize("trainyard", [".", "trainyard"])
def test_the_step_that_installs_installs_trainyard_and_nothing_else(trainyard: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/sh\nmkdir -p "$4/bin"\nprintf \'#!/bin/sh\\necho "$*" >>"$SEEN"\\n\' >"$4/bin/python"\n'
        'chmod +x "$4/bin/python"\n'
    )
    python.chmod(0o755)
    (step,) = (one for one in workflow("review.yml")["jobs"]["review"]["steps"] if one.get("name") == "Install")
    seen = tmp_path / "seen"
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SEEN": str(seen), "TRAINYARD": trainyard}
    subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], cwd=tmp_path, env=variables, check=True)
    assert (tmp_path / trainyard / ".venv" / "bin" / "python").is_file()
    install = "-I -m pip install --quiet"
    assert seen.read_text().splitlines() == [
        f"{install} --require-hashes -r {trainyard}/requirements-aws.txt",
        f"{install} --no-deps --no-build-isolation --editable {trainyard}",
    ]  # fmt: skip


def test_the_job_that_runs_a_forks_code_has_no_secret_and_may_write_nothing() -> None:
    for name in ("review.yml", "review-comment.yml"):
        text = (FOLDER / name).read_text("utf-8")
        assert "pull_request_target:" not in text
        assert "secrets." not in text
        for job in workflow(name)["jobs"].values():
            # A text of somebody else inside a script would be a part of it.
            assert not [step for step in job["steps"] if "${{" in step.get("run", "")]
    assert workflow("review.yml")["permissions"] == {"contents": "read"}
    # What holds a token checks out the default branch: the events have no other commit.
    first, *others = workflow("review-comment.yml")["jobs"]["comment"]["steps"]
    assert first["uses"].startswith("actions/checkout@")
    assert first["with"] == {"persist-credentials": False}
    assert not [step for step in others if "uses" in step]


@pytest.mark.parametrize("file", sorted(FOLDER.iterdir()), ids=lambda file: file.name)
def test_actions_are_pinned_by_commit(file: Path) -> None:
    uses = [step["uses"] for job in workflow(file.name)["jobs"].values() for step in job["steps"] if "uses" in step]
    assert uses
    assert [used for used in uses if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", used)] == []
