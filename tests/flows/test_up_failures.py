# SPDX-License-Identifier: Apache-2.0
"""`up` whose runs fail: its exit code, what it says last, and that the next `up` starts them again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from localcloud import admin
from tests.support.local_team import Team, summary

pytestmark = pytest.mark.engine

NEEDS_POINTS = """\
import sys
from pathlib import Path
points = Path("/trainyard-data/points/first")
if not points.exists():
    sys.exit("there are no points yet")
print("trained with", points.read_text())
"""
AGAIN = "failed in an earlier `up`: starts again, at most 1 node-hour (1 node x 1 hour)"
# The engine works in the order of the file: `late` has failed before `waited` fails.
UP = ("up", "local", "--parallel", "1")


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    one = Team(tmp_path)
    yield one
    one.end()


def _configure(team: Team, **changed: object) -> None:
    jobs = yaml.safe_load(team.file.read_text())["config"]["trainyard:jobs"]
    line = jobs["line"]
    line |= {"command": "train.py", "inputs": [{"mount": "/trainyard-data/points", "prefix": "points/"}]}
    line["runs"] = {"late": {}, "waited": {"until": "finished"}, "third": {}, **changed}
    jobs["apart"] = {**line, "runs": {"only": {"until": "accepted"}}}
    team.configure("jobs", jobs)


def test_runs_that_fail_come_last_and_the_next_up_starts_them_again(team: Team) -> None:
    (team.stacks / "local" / "train.py").write_text(NEEDS_POINTS)
    _configure(team)
    done = team.attempt(*UP)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Outputs:" not in done.stdout
    last = done.stdout.rpartition("Duration:")[2]
    assert "`up` has failed, so the stack `local` is not as its file says." in last
    assert "job      apart: `up` did not wait for its runs, because their `until` is `accepted`" in last
    failed = re.split(r"^\d runs failed:$", last, flags=re.MULTILINE)[1]
    for title in ("line/late: FAILED", "line/waited: FAILED"):
        told = failed.partition(title)[2].partition("  run  ")[0]
        assert "there are no points yet" in told, failed
        assert "Correct the cause; the next `up` starts the run again." in told
    assert "Pulumi ended" not in failed, "the failure of a run is told once"

    preview = team.trainyard("preview", "local")
    assert set(re.findall(r"Run line/(\w+) replace \[diff: ~state: (.*)\]", preview)) >= {
        ("late", AGAIN),
        ("waited", AGAIN),
    }
    assert "Run apart/only" not in preview, "nobody waited for it, so nobody is asked to pay for it again"
    assert "Outputs:" not in preview

    # A failed run does not prevent the replacement of others, and need not fail a pipeline.
    _configure(team, third={"env": {"SEED": "1"}})
    allowed = team.attempt(*UP, "--allow-failed-runs", "--verbose")
    assert allowed.returncode == 0, allowed.stdout + allowed.stderr
    assert summary(allowed.stdout)["replaced"] == 3
    assert "Outputs:" in allowed.stdout

    (team.home / "first").write_text("1 2")
    team.trainyard("data", "put", "local", str(team.home / "first"), "points")
    trained = team.trainyard(*UP)
    assert summary(trained)["replaced"] >= 2
    # A launcher that had to wait prints lines about that.
    waited = r"run +line/waited: SUCCEEDED\n(?: +\[0\.launcher\] .*\n)* +\[0\] trained with 1 2"
    assert re.search(waited, trained), trained
    assert re.search(r"run +apart/only: FAILED", trained)
    assert "This `up` did not wait for it. A higher `attempt`, or a change in what it runs" in trained
    again = team.trainyard(*UP)
    assert "replaced" not in summary(again)


@pytest.mark.torture
def test_errors_of_pulumi_are_printed_last(team: Team) -> None:
    admin.add_fault(team.cloud, "limit", limit="subnet-count", value=0)
    done = team.attempt("up", "local", "--allow-failed-runs")
    assert done.returncode != 0, "more than runs failed"
    last = done.stdout.rpartition("Duration:")[2]
    assert re.search(
        r"Pulumi ended with 1 error:\n  oci:Core:Subnet \(subnet\)\n    Create subnet: 400 LimitExceeded", last
    )
    assert last.rstrip().endswith("."), last
