# SPDX-License-Identifier: Apache-2.0
"""A git repository with two commits of a script and of a module that the script imports."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def repository(folder: Path, script: str = "import helper; print('code', {number}, helper.WORD)") -> tuple[str, str]:
    """Makes the repository, and returns its address and the commit before the last."""
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
        (folder / "main.py").write_text(script.replace("{number}", str(number)))
        (folder / "helper.py").write_text("WORD = 'helps'")
        git("add", ".")
        git("commit", "--quiet", "-m", str(number))
    return f"file://{folder}", git("rev-parse", "HEAD~1")
