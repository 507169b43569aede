# SPDX-License-Identifier: Apache-2.0
"""A local cloud on a disk that is full, and in a folder that cannot be written to."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mounts import mount_namespace
from tests.support.waiting import LONGEST_SECONDS

ROOT = Path(__file__).parents[2]
WORK = ROOT / "tests" / "flows" / "disk_work.py"


def test_a_full_disk_gives_a_clear_error_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    command = [*mount_namespace(), sys.executable, str(WORK), str(folder)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=4 * LONGEST_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    for outcomes in (told["puts"], told["made"]):
        *answered, (status, code, message) = outcomes
        assert all(outcome == [200] for outcome in answered)
        assert (status, code) == (507, "InsufficientStorage")
        assert str(folder / "cloud") in message
    assert (told["stored"], told["incoming"], told["tracebacks"]) == (len(told["puts"]) - 1, 0, 0)
    assert told["vcns"] == len(told["made"]) - 1, "what was refused is not there, what was answered is"
    assert (told["after"], told["vcns after"]) == ([200], told["vcns"] + 1), "with room again it goes on"


@pytest.mark.parametrize("words", ["cloud start", "up local --local", "rehearse local"])
@pytest.mark.parametrize(("options", "reason"), [("size=32k", "no space left"), ("ro", "Read-only file system")])
def test_commands_report_a_folder_without_space_or_permission(
    words: str, options: str, reason: str, tmp_path: Path
) -> None:
    script = f'mount -t tmpfs -o {options} tmpfs "$TRAINYARD_HOME" && exec "{sys.executable}" -m trainyard {words}'
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TRAINYARD_HOME": str(tmp_path)}
    done = subprocess.run(
        [*mount_namespace(), "sh", "-c", script],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
    )
    assert done.returncode == 1
    assert re.search(rf"^Error: .*{reason}", done.stderr, re.MULTILINE | re.IGNORECASE), done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    assert str(tmp_path) in done.stderr
