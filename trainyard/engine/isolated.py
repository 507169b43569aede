# SPDX-License-Identifier: Apache-2.0
"""Starts Python and git so that no file of a stranger's repository becomes a program.

Commands run in folders that hold files from pull requests. Python would take `pip.py` of such a folder for pip,
and git would read the configuration of a repository that was committed there. So the product starts both only here, as
tests/contract/test_isolated_programs.py checks. Standard library only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# Variables with which every Python below, also one that pip starts, would import modules from elsewhere.
_PYTHON_SETTINGS = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP")
# A repository is only what has a `.git`, as no commit can. Nothing of it is run unasked: hooks, monitors.
_GIT = ("git", "--no-pager", "-c", "safe.bareRepository=explicit", "-c", "core.hooksPath=/dev/null",
        "-c", "core.fsmonitor=false")  # fmt: skip
# Objects are what their hashes say, and reading writes nothing.
_GIT_VARIABLES = {
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}


class GitError(Exception):
    """git refused or failed; the text is the first line of its error."""


def isolated_python(*arguments: str, python: str | Path = sys.executable, packages_of_user: bool = False) -> list[str]:
    """The command of a Python that imports nothing from the current folder or from PYTHONPATH.

    With `packages_of_user`, for programs of ours: it has the packages that this process has, also those of the user's
    own folder, and the caller sets PYTHONPATH."""
    return [str(python), "-P" if packages_of_user else "-I", *arguments]


def without_python_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """These variables without those that change what a Python imports."""
    return {name: value for name, value in environment.items() if name not in _PYTHON_SETTINGS}


def git_output(
    folder: Path, *arguments: str, variables: Mapping[str, str] | None = None, timeout: float | None = None
) -> str:
    """What git prints about the repository that this folder is part of."""
    # The nearest folder with a `.git`: git itself would also take a folder whose files look like a repository, and
    # versions before 2.38 know no option against that.
    start = folder.resolve()
    repository = next((parent for parent in (start, *start.parents) if os.path.lexists(parent / ".git")), None)
    if repository is None:
        raise GitError("not a git repository (or any of the parent directories): .git")
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        [*_GIT, "-C", str(repository), *arguments],
        env={**own, **_GIT_VARIABLES, **(variables or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="surrogateescape", check=False, timeout=timeout,
    )  # fmt: skip
    if done.returncode:
        first_line = next(iter(done.stderr.strip().splitlines()), "")
        raise GitError(first_line.removeprefix("fatal: ") or f"git {arguments[0]} failed")
    return done.stdout.strip()


def why_committed(folder: Path) -> str:
    """Why a folder of states and plugins must not be used: a commit brought files into it. Empty if none did.

    What it holds decides what runs: the local AWS is stored as pickles, and the engine starts plugins from its home."""
    try:
        is_committed = bool(git_output(folder, "ls-files", "--", str(folder.resolve())))
    except (GitError, FileNotFoundError):
        return ""
    remedy = f"delete it, and take it out of the repository (git rm -r --cached {folder}), or set TRAINYARD_HOME"
    return f"{folder} has files from a commit, and what it holds decides what runs: {remedy}" if is_committed else ""
