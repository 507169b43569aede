# SPDX-License-Identifier: Apache-2.0
"""The workflows that show a review: what they may do, and their shell steps, executed against a stand-in for `gh`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.programs import require_program

FOLDER = Path(__file__).parents[2] / ".github" / "workflows"
MARK = "<!-- trainyard review -->"
# Answers from files, and writes down what it was asked to write.
GH = """\
#!/bin/sh
case "$*" in
*"--method PATCH"*|*"--method POST"*)
  for word; do case "$word" in body=@*) file=${word#body=@};; repos/*) place=$word;; esac; done
  echo "$3 $place" >>"$SEEN/calls"; cp "$file" "$SEEN/body" ;;
*"/pulls "*) cat "$SEEN/pulls.json" ;;
*"/comments"*) cat "$SEEN/comments.json" ;;
"run download"*) cp -r "$SEEN/review" . ;;
*) exit 9 ;;
esac
"""


def workflow(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text("utf-8"))
    return document


def comment(
    folder: Path, *, review: str | None, old: str | None, sha: str = "abc", **variables: str
) -> tuple[str, str]:
    """The calls that wrote, and what was written."""
    for name in ("jq", "bash", "sed", "grep"):
        require_program(name)
    seen = folder / "seen"
    (seen / "review").mkdir(parents=True)
    if review is not None:
        (seen / "review" / "review.md").write_text(review)
    (seen / "pulls.json").write_text(json.dumps([{"number": 7, "head": {"sha": "abc"}}]))
    bot = {"login": "github-actions[bot]"}
    comments = [
        {"id": 1, "user": {"login": "somebody"}, "body": MARK},
        *([{"id": 2, "user": bot, "body": old}] if old else []),
    ]
    (seen / "comments.json").write_text(json.dumps(comments))
    program = folder / "bin" / "gh"
    program.parent.mkdir()
    program.write_text(GH)
    program.chmod(0o755)
    (step,) = workflow("review-comment.yml")["jobs"]["comment"]["steps"]
    work = folder / "work"
    work.mkdir()
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}", "SEEN": str(seen), "GH_TOKEN": "t", "REPO": "a/b", "RUN": "1",
        "ACTION": "completed", "CONCLUSION": "success", "SHA": sha, "OWNER": "fork", "BRANCH": "topic", **variables,
    }  # fmt: skip
    script = step["run"]
    subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=work, env=environment, check=True)
    calls, body = seen / "calls", seen / "body"
    return calls.read_text() if calls.exists() else "", body.read_text() if body.exists() else ""


def test_a_review_becomes_a_comment(tmp_path: Path) -> None:
    calls, body = comment(tmp_path, review=f"{MARK}\n**one: opens 1**\n", old=None)
    assert calls == "POST repos/a/b/issues/7/comments\n"
    assert body.startswith(f"{MARK}\n")
    assert "abc" in body
    assert "**one: opens 1**" in body
    assert body.count(MARK) == 1


def test_the_next_push_updates_it(tmp_path: Path) -> None:
    calls, body = comment(tmp_path, review=f"{MARK}\n**one: opens 2**\n", old=f"{MARK}\n**one: opens 1**\n")
    assert calls == "PATCH repos/a/b/issues/comments/2\n"
    assert "opens 2" in body
    assert "opens 1" not in body


def test_nothing_to_decide_makes_no_comment_but_updates_one(tmp_path: Path) -> None:
    assert comment(tmp_path / "a", review="one: nothing to decide\n", old=None)[0] == ""
    calls, body = comment(tmp_path / "b", review="one: nothing to decide\n", old=f"{MARK}\n**one: opens 1**\n")
    assert calls.startswith("PATCH")
    assert "nothing to decide" in body


@pytest.mark.parametrize("variables", [{"ACTION": "requested"}, {"CONCLUSION": "failure"}])
def test_a_comment_of_an_earlier_commit_is_marked_once(variables: dict[str, str], tmp_path: Path) -> None:
    calls, body = comment(tmp_path / "a", review=None, old=f"{MARK}\n**one: opens 1**\n", **variables)
    assert calls.startswith("PATCH")
    again = comment(tmp_path / "b", review=None, old=body, **variables)[1]
    for text in (body, again):
        assert (text.count(MARK), text.count("**Stale**"), text.count("**one: opens 1**")) == (1, 1, 1)
    assert comment(tmp_path / "c", review=None, old=None, **variables)[0] == ""


def test_a_commit_that_is_not_the_newest_writes_nothing(tmp_path: Path) -> None:
    assert comment(tmp_path, review=f"{MARK}\nx\n", old=f"{MARK}\ny\n", sha="def") == ("", "")


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
        f"{install} --require-hashes -r {trainyard}/requirements-aws.txt", f"{install} --no-deps setuptools>=77",
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
    assert "checkout" not in (FOLDER / "review-comment.yml").read_text("utf-8")
