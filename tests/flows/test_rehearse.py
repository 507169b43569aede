# SPDX-License-Identifier: Apache-2.0
"""A rehearsal of a team's own small framework, with real nodes, rules and statements, and what fails without them."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from localcloud import files
from tests.support.local_team import ended
from tests.support.rehearsing import LONGEST_SECONDS, Rehearsals

pytestmark = pytest.mark.engine


@pytest.fixture
def ring(tmp_path: Path) -> Rehearsals:
    return Rehearsals.of_ring(tmp_path)


def pairs(report: dict[str, Any], direction: str) -> set[str]:
    return {pair for rule in report["rules"] if rule["rule"].startswith(direction) for pair in rule["pairs"]}


def test_a_rehearsal_passes_and_its_predicted_failures_occur(ring: Rehearsals) -> None:
    report = ring.report("ring", "--prove", "--confirm", "2", "--seed", "7")
    assert (report["verdict"], report["firewall"]) == ("passed", "enforced"), report
    (run,) = report["runs"]
    assert [(rank["joined"], rank["finished"]) for rank in run["ranks"]] == [(True, True)] * 3
    assert {rank["name"] for rank in run["ranks"]} == {"main-0", "worker-0", "worker-1"}
    assert run["firstStepSeconds"] is not None
    assert [artifact["name"] for artifact in run["artifacts"]] == ["sum.txt"]
    wanted = {f"sum/base worker-{number} -> sum/base main-0 tcp 7400" for number in (0, 1)}
    assert pairs(report, "ingress") == wanted
    assert wanted < pairs(report, "egress"), "and the way to the bucket"
    assert [one for one in report["dropped"] if not one["missing"].startswith("late packets")] == []
    assert report["refused"] == []
    (tested,) = report["preflight"]
    assert (tested["run"], tested["findings"], tested["untested"]) == ("sum/base", [], "")
    assert tested["connections"] == [
        {"source": f"worker-{number}", "target": "main-0", "label": "sums", "ports": "7400", "open": True}
        for number in (0, 1)
    ]
    assert {one["policy"] for one in report["statements"]} == {"ring-test-access"}
    assert any(one["inferred"] for one in report["statements"]), "some verdicts rest on inferred permissions"

    outcomes = report["proof"]["outcomes"]
    assert report["proof"]["unexplained"] == 0, [one for one in outcomes if not one["explained"]]
    assert {one["fate"] for one in outcomes if one["of"] == "rule"} == {"fails", "caught"}
    assert all("sum/base" in one["because"] for one in outcomes if one["of"] == "rule" and one["fate"] == "fails")
    review = ring.reviewed("ring", report)
    by_ports = [one for one in review["proven"] if one.startswith("proven: TCP 7400")]
    assert len(by_ports) == 2, review
    used, idle = (
        {one["statement"] for one in report["statements"] if bool(one["calls"]) is does} for does in (True, False)
    )
    assert used == {one.removeprefix("proven: ").rpartition(": ")[0] for one in review["proven"] if "Allow " in one}
    assert idle == {
        one.removeprefix("not needed: ").rpartition(": ")[0] for one in review["unneeded"] if "Allow " in one
    }
    assert not [one for one in review["unproven"] if "Allow " in one or "TCP" in one], review["unproven"]

    assert len(report["confirmed"]) == 2
    assert {one["of"] for one in report["confirmed"]} == {"rule", "statement"}
    assert all(one["because"].startswith("seen as predicted") for one in report["confirmed"]), report["confirmed"]
    assert ring.left() == []


def test_an_unplanned_port_fails_the_rehearsal_and_names_the_pair(ring: Rehearsals) -> None:
    ring.change("code/train.py", 'int(os.environ["RING_PORT"])', 'int(os.environ["RING_PORT"]) + 1')
    ring.change("code/train.py", "PATIENCE_SECONDS = 90.0", "PATIENCE_SECONDS = 10.0")
    report = ring.report("ring")
    assert report["verdict"] == "failed"
    because = report["runs"][0]["because"]
    for number in (0, 1):
        pair = f"sum/base worker-{number} -> sum/base main-0 tcp 7401 was dropped"
        assert any(reason.startswith(pair) for reason in because), because
    assert any("rank 1 (worker-0) ended as FAILED" in reason for reason in because)
    assert {rule["connections"] for rule in report["rules"] if "tcp 7400" in rule["rule"]} == {0}
    assert ring.left() == []


@pytest.mark.torture
def test_a_stack_that_this_machine_cannot_run_never_passes(ring: Rehearsals) -> None:
    ring.change("code/train.py", "import json\n", "import json\nimport horovod\nimport xgboost\n")
    report = ring.report("ring")
    assert (report["verdict"], report["exitCode"]) == ("not rehearsed", 3)
    (reason,) = report["runs"][0]["because"]
    assert "horovod" in reason
    assert ring.left() == []


@pytest.mark.torture
def test_two_rehearsals_run_at_once_with_fewer_nodes(ring: Rehearsals) -> None:
    """Each rehearsal has its own cloud. The report can also be a section of a review."""
    started = [ring.start("ring", "--nodes", "2", "--format", form) for form in ("json", "markdown")]
    try:
        (told, errors), (section, more_errors) = [one.communicate(timeout=LONGEST_SECONDS) for one in started]
    finally:
        for one in started:
            one.kill()
    assert [one.returncode for one in started] == [0, 0], errors + more_errors
    report = json.loads(told)
    assert len(report["runs"][0]["ranks"]) == 2
    assert "job sum: 2 of its 3 nodes" in report["notProven"]
    assert section.startswith("### Rehearsal of ring: passed")
    assert "| sum/base | ring | passed | 2 of 2 |" in section
    assert ring.left() == []


@pytest.mark.torture
def test_node_groups_are_reported_rank_by_rank(ring: Rehearsals) -> None:
    """One job run for all nodes. Its override must keep their image and network."""
    ring.change("Pulumi.ring.yaml", "      framework: ring\n", "      framework: ring\n      layout: node-groups\n")
    report = ring.report("ring")
    assert report["verdict"] == "passed", report
    ranks = report["runs"][0]["ranks"]
    assert [(rank["rank"], rank["name"]) for rank in ranks] == [(0, "main-0"), (1, "worker-0"), (2, "worker-1")]
    assert len({rank["address"] for rank in ranks}) == 3
    assert "sum/base worker-1 -> sum/base main-0 tcp 7400" in pairs(report, "ingress")
    assert ring.left() == []


def test_ctrl_c_removes_everything(ring: Rehearsals) -> None:
    ring.change("code/train.py", "progress(step=0)\n", "progress(step=0)\ntime.sleep(600)\n")
    process = ring.start("ring")
    try:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "step 0" in line:
                break
        assert re.search(r"the team's code runs as user.* only the plan's connections", "".join(lines[:2])), lines[:2]
        (home,) = (ring.home / "rehearsals").iterdir()
        cloud = json.loads((home / "cloud" / "server.json").read_text())
        assert files.is_same_process(cloud["pid"], cloud["started"])
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LONGEST_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert ended(cloud["pid"])
    assert ring.left() == []


@pytest.mark.torture
def test_the_next_rehearsal_removes_a_killed_one(ring: Rehearsals) -> None:
    ring.change("code/train.py", "progress(step=0)\n", "progress(step=0)\ntime.sleep(600)\n")
    process = ring.start("ring")
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "step 0" in line:
                break
    finally:
        process.kill()
        process.communicate()
    (home,) = (ring.home / "rehearsals").iterdir()
    cloud = json.loads((home / "cloud" / "server.json").read_text())
    ring.change("code/train.py", "time.sleep(600)\n", "")
    assert ring.report("ring", "--nodes", "2")["verdict"] == "passed"
    assert ended(cloud["pid"])
    assert ring.left() == []


def test_a_stack_that_cannot_be_used_has_its_own_exit_code(ring: Rehearsals) -> None:
    missing = ring.run("rang")
    assert (missing.returncode, "did you mean `ring`" in missing.stderr) == (2, True), missing.stderr
    ring.change("Pulumi.ring.yaml", "framework: ring", "framework: rong")
    wrong = ring.run("ring")
    assert wrong.returncode == 2
    assert "did you mean `ring`" in wrong.stdout
    assert ring.left() == []
