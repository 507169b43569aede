# SPDX-License-Identifier: Apache-2.0
"""Code from git: the commit that the stack names runs on every node."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from schemas.model import Code, Git
from tests.flows.launcher.nodes import Place, nodes, planned


def repository(folder: Path) -> tuple[str, str]:
    """Its address and the commit before the last."""
    folder.mkdir()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "someone" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }  # fmt: skip

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch", "main")
    for number in (1, 2):
        (folder / "main.py").write_text(f"import helper; print('code', {number}, helper.WORD)")
        (folder / "helper.py").write_text("WORD = 'helps'")
        git("add", ".")
        git("commit", "--quiet", "-m", str(number))
    return f"file://{folder}", git("rev-parse", "HEAD~1")


def test_the_named_commit_runs(place: Place, tmp_path: Path) -> None:
    url, commit = repository(tmp_path / "repository")
    code = Code(git=Git(url, "main", commit, None))
    spec = planned("pytorch", {"main": 1, "worker": 1}, ports={"data": "all"}, code=code, command="python main.py")
    with nodes(place, tmp_path / "nodes", spec, "git") as run:
        assert run.start().codes() == [0, 0]
        assert "[1] code 1 helps" in run.launchers[1].text


def test_a_repository_that_is_not_there_is_said(place: Place, tmp_path: Path) -> None:
    code = Code(git=Git(f"file://{tmp_path}/nowhere", None, None, None))
    spec = planned("pytorch", {"main": 1}, ports={"data": "all"}, code=code, command="python main.py")
    with nodes(place, tmp_path / "nodes", spec, "git-nowhere") as run:
        assert run.start().codes() == [75]
        assert "the code cannot be had from git: " in run.launchers[0].text
