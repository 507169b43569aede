# SPDX-License-Identifier: Apache-2.0
"""The download of the engine is killed at random points: the cache then has a complete engine or none, and the next
attempt works.

TRAINYARD_TORTURE=<count> runs more of them. The release comes from a local server, so that hundreds of kills take a
minute.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from tests.support.counts import FIRST, wanted
from tests.support.releases import CHECKOUT, release

# Fixtures are found by their names here.
from tests.support.releases import pages as pages
from tests.support.releases import releases as releases
from tests.support.releases import secure as secure
from trainyard.engine.obtain import cached_engine, version_of
from trainyard.engine.versions import ENGINE_VERSION, Machine

COUNT = wanted(sample=10, full=300)
PORTION = 10
LONGEST_SECONDS = 300


def _start(env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "trainyard.engine", "path"], cwd=CHECKOUT, env=env, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _undisturbed(env: dict[str, str]) -> float:
    start = time.monotonic()
    assert _start(env).wait(LONGEST_SECONDS) == 0
    return time.monotonic() - start


@pytest.mark.parametrize("portion", range(0, COUNT, PORTION))
def test_a_killed_set_up_leaves_a_complete_engine_or_none(
    portion: int, tmp_path: Path, releases: tuple[Path, str]
) -> None:
    release(releases[0])
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "TRAINYARD_PULUMI_RELEASES": releases[1]}
    env["PATH"] = str(tmp_path)  # There is no engine.
    folder = cached_engine(env, Machine.here())
    seconds = _undisturbed(env)
    for seed in range(FIRST + portion, FIRST + min(portion + PORTION, COUNT)):
        shutil.rmtree(folder, ignore_errors=True)
        set_up = _start(env)
        with contextlib.suppress(subprocess.TimeoutExpired):
            set_up.wait(Random(seed).uniform(0, seconds))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(set_up.pid, signal.SIGKILL)
        set_up.wait(LONGEST_SECONDS)
        assert not folder.exists() or version_of(folder / "pulumi", env) == f"v{ENGINE_VERSION}", seed
        if seed % 2:  # The next set-up finds the files of a killed one; every second one is killed as well.
            _undisturbed(env)
            assert version_of(folder / "pulumi", env) == f"v{ENGINE_VERSION}", seed
            assert not list(folder.parent.glob("*.part-*")), seed
