# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.upgrade.record RELEASE`: keeps the state that this release makes of the stack `local`.

Run it when a release is made. The passphrase in the recording is for the recording only.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.local_team import Team

RECORDINGS = Path(__file__).parent


def record(release: str) -> Path:
    """The stack file with the folder it names, the state, and what opens the state."""
    into = RECORDINGS / release
    with TemporaryDirectory() as folder:
        team = Team(Path(folder))
        try:
            team.trainyard("up", "local")
            exported = team.pulumi("stack", "export", "--stack", "local", "--cwd", str(team.home / "pulumi" / "stacks"))
            into.mkdir(exist_ok=True)
            (into / "state.json").write_text(json.dumps(json.loads(exported.stdout), indent=1) + "\n")
            shutil.copy(team.file, into)
            shutil.copytree(team.stacks / "local", into / "local", dirs_exist_ok=True)
            shutil.copy(team.home / "pulumi" / "passphrase", into / "passphrase")
            shutil.copy(team.home / "pulumi" / "stacks" / team.file.name, into / "local-file.yaml")
        finally:
            team.end()
    return into


if __name__ == "__main__":
    print(record(sys.argv[1]))
