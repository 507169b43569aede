# SPDX-License-Identifier: Apache-2.0
"""Progress for a silent command, whose exit code and signals stay the same."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[4] / "trainyard" / "engine" / "progress.py"


@pytest.mark.parametrize(("ends", "code", "told"), [("pass", 0, "done"), ("raise SystemExit(3)", 3, "failed")])
def test_a_command_is_run_with_progress(ends: str, code: int, told: str) -> None:
    command = [sys.executable, "-c", f"print('its own words'); {ends}"]
    done = subprocess.run(
        [sys.executable, "-P", str(SCRIPT), "working", *command], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (code, "its own words\n")
    assert done.stderr == f"trainyard: working\ntrainyard: working: {told}\n"
