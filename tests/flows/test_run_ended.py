# SPDX-License-Identifier: Apache-2.0
"""A test run that gets SIGTERM leaves no local cloud behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.waiting import LONGEST_SECONDS, eventually

ROOT = Path(__file__).resolve().parents[2]
TEST = """
import os, pathlib, time

def test_that_is_cut_off(shared_cloud):
    pathlib.Path(os.environ["SEEN"]).write_text(f"{shared_cloud.pid}")
    time.sleep(600)
"""


def test_sigterm_stops_the_clouds_of_a_test_run(tmp_path: Path) -> None:
    """SIGTERM to the controlling process alone also reaches the worker that has the cloud."""
    seen = tmp_path / "seen"
    (tmp_path / "test_cut.py").write_text(TEST)
    words = [
        "-m",
        "pytest",
        "-q",
        "-n",
        "1",
        "-p",
        "tests.support.cloud_fixture",
        "-p",
        "tests.support.ending",
        "--rootdir",
    ]
    env = {**os.environ, "SEEN": str(seen), "PYTHONPATH": str(ROOT)}
    env = {name: value for name, value in env.items() if not name.startswith("PYTEST_")}
    with subprocess.Popen(
        [sys.executable, *words, str(tmp_path), "--basetemp", str(tmp_path / "run"), "test_cut.py"],
        cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as run:  # fmt: skip
        try:
            cloud = psutil.Process(int(eventually(lambda: seen.exists() and seen.read_text(), bool)))
            run.send_signal(signal.SIGTERM)
            said, _ = run.communicate(timeout=LONGEST_SECONDS)
        finally:
            run.kill()
    assert run.returncode == pytest.ExitCode.INTERRUPTED, said
    assert not cloud.is_running(), said
