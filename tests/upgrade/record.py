# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.upgrade.record RELEASE [STACK…]`: keeps the states that this release makes of a few stacks.

The first is the stack `local` of the flows; the others are in `stacks/`. Run it for each release. The passphrase in a
recording is for the recording only.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.local_team import Team

RECORDINGS = Path(__file__).parent
STACKS = RECORDINGS / "stacks"
CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
LOCAL = "local"
# The job of a stack that is started once more before its state is recorded.
WITH_A_TRY = {"aws-dl1": "resnet", "openpai": "cifar10"}


def record(release: str, stack: str) -> Path:
    """Records the stack file with its code folder, the state, the passphrase of the state, and the release."""
    into = RECORDINGS / (release if stack == LOCAL else f"{release}-{stack}")
    with TemporaryDirectory() as folder:
        team = Team(Path(folder))
        if stack != LOCAL:
            shutil.copy(STACKS / stack / team.file.name, team.file)
        try:
            team.trainyard("up", "local")
            if stack in WITH_A_TRY:
                # Traces of a try must not count as a change of the copied run.
                team.trainyard("run", "local", WITH_A_TRY[stack])
            exported = team.pulumi("stack", "export", "--stack", "local", "--cwd", str(team.home / "pulumi" / "stacks"))
            into.mkdir(exist_ok=True)
            (into / "state.json").write_text(json.dumps(_without_positions(exported.stdout), indent=1) + "\n")
            shutil.copy(team.file, into)
            if "./local" in team.file.read_text():
                shutil.copytree(team.stacks / "local", into / "local", dirs_exist_ok=True)
            shutil.copy(team.home / "pulumi" / "passphrase", into / "passphrase")
            shutil.copy(team.home / "pulumi" / "stacks" / team.file.name, into / "local-file.yaml")
            (into / "made-by.txt").write_text(f"{_made_by()}\n")
        finally:
            team.end()
    return into


def _without_positions(exported: str) -> dict[str, Any]:
    """The state without source positions of the program, which are specific to this machine."""
    state: dict[str, Any] = json.loads(exported)
    for row in state["deployment"]["resources"]:
        for name in ("sourcePosition", "stackTrace"):
            row.pop(name, None)
    return state


def _made_by() -> str:
    """The name of the release. If the changelog's heading says `unreleased`, the name says so, too."""
    words = ["git", "log", "-1", "--format=commit %H of %cI"]
    commit = subprocess.run(words, cwd=RECORDINGS, capture_output=True, text=True, check=True).stdout.strip()
    heading = re.search(r"^## (.*)$", CHANGELOG.read_text(), re.MULTILINE)
    return f"Made by {commit}, {heading[1] if heading else 'no release'}."


if __name__ == "__main__":
    others = sorted(path.name for path in STACKS.iterdir())
    for name in sys.argv[2:] or [LOCAL, *others]:
        print(record(sys.argv[1], name))
