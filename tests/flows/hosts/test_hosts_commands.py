# SPDX-License-Identifier: Apache-2.0
"""Commands on a machine without namespaces: no training runs without enforced rules, unless the user asks for that."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localcloud import control
from localcloud.files import REQUIRED, VARIABLE
from tests.support.local_team import LONGEST_SECONDS, ROOT, Team
from tests.support.rehearsing import Rehearsals

pytestmark = pytest.mark.engine
_WITHOUT_NAMESPACES = "echo 0 >/proc/sys/user/max_net_namespaces"


def _told(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command on such a machine, and returns its output."""
    inside = ("sh", "-ec", f'{_WITHOUT_NAMESPACES}; exec "$@"', "sh", sys.executable, "-m", "trainyard", *words)
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", *inside],
        cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_SECONDS, stdin=subprocess.DEVNULL,
        env={**os.environ, VARIABLE: REQUIRED, "TRAINYARD_HOME": str(home), "PULUMI_OPTION_COLOR": "never"},
    )  # fmt: skip


def test_up_names_missing_isolation_and_continues_only_with_the_option(tmp_path: Path) -> None:
    team = Team(tmp_path)
    words = ("up", "local", "--local", "--stacks", str(team.stacks))
    without = ("--isolation", "where-possible")
    try:
        refused = _told(team.home, *words)
        assert refused.returncode == 1, refused.stdout + refused.stderr
        assert "refuses namespaces" in refused.stderr
        assert "--isolation where-possible" in refused.stderr
        assert "Traceback" not in refused.stderr
        late = _told(team.home, *words, *without)
        assert (late.returncode, "trainyard cloud stop" in late.stderr) == (1, True), late.stderr
        control.stop_cloud(team.home / "cloud")
        done = _told(team.home, *words, *without)
        assert done.returncode == 0, done.stdout + done.stderr
        (line,) = [line for line in done.stdout.splitlines() if "not enforced between its nodes" in line]
        assert "refuses namespaces" in line
    finally:
        control.stop_cloud(team.home / "cloud")


def test_a_rehearsal_without_namespaces_runs_no_code(tmp_path: Path) -> None:
    ring = Rehearsals.of_ring(tmp_path)
    done = _told(ring.home, "rehearse", "ring", "--stacks", str(ring.stacks), "--format", "json")
    assert done.returncode == 3, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] == "not rehearsed"
    (run,) = report["runs"]
    assert (run["verdict"], run["ranks"]) == ("not rehearsed", [])
    assert "refuses namespaces" in run["because"][0]
    assert "--isolation where-possible" in run["because"][0]
    assert ring.left() == []
