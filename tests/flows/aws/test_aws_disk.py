# SPDX-License-Identifier: Apache-2.0
"""The local AWS on a disk that is full."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.mounts import mount_namespace
from tests.support.waiting import LONGEST_SECONDS

ROOT = Path(__file__).parents[3]
WORK = ROOT / "tests" / "flows" / "aws" / "disk_work.py"


def test_a_full_disk_gives_a_clear_error_and_a_refused_change_is_not_stored(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    command = [*mount_namespace(), sys.executable, str(WORK), str(folder)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=4 * LONGEST_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    *answered, (status, message) = told["puts"]
    assert answered
    assert all(outcome == [200] for outcome in answered)
    assert (status, str(folder / "cloud") in message) == (507, True)
    assert (told["stored"], told["tracebacks"]) == (len(answered), 0)
    assert (told["after"], told["then"]) == ([200], told["stored"] + 1)
