# SPDX-License-Identifier: Apache-2.0
"""From the evidence of a rehearsal to the verdict and its text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from components.platform.rehearsal import Artifact
from components.platform.traffic import read_traffic
from tests.support.hostile import PLANTED, orders
from tests.unit.trainyard.rehearsal.recorded import (
    FIRST,
    MAIN,
    NODES,
    SECOND,
    STORE,
    document,
    flow,
    rank,
    run,
    seen,
    seen_calls,
    seen_traffic,
)
from trainyard.rehearsal.judgement import judge_rehearsal, overall_verdict
from trainyard.rehearsal.model import EXIT_CODES, RankSeen, RunSeen
from trainyard.rehearsal.mutations import prove_by_mutations
from trainyard.rehearsal.report import RENDERERS, rehearsal_json, rehearsal_markdown, rehearsal_text


def test_a_run_whose_ranks_all_finished_has_passed() -> None:
    report = judge_rehearsal(seen())
    assert (report.verdict, report.exit_code) == ("passed", 0)
    assert [(one.joined, one.finished) for one in report.runs[0].ranks] == [(True, True)] * 3
    assert report.runs[0].first_step_seconds == 2.5, "training has begun when the last rank has"


def test_files_that_a_real_cloud_would_lose_are_not_proven() -> None:
    lost = "sum/base rank 0: 1 file came back only from the local cloud"
    report = judge_rehearsal(seen(run(local_only=(lost,))))
    assert report.not_proven[-1] == lost
    assert lost in rehearsal_text(report)


def test_what_comes_back_only_here_is_marked() -> None:
    files = run().artifacts[0], Artifact("workdir/snapshot.pt", 149_000_000, local_only=True)
    shown = rehearsal_text(judge_rehearsal(seen(replace(run(), artifacts=files))))
    assert "workdir/snapshot.pt  149000000 bytes, which a real cloud would lose" in shown
    assert re.search(r"sum\.txt +1 bytes\n", shown)


def test_dropped_connections_are_named_before_their_consequences() -> None:
    blocked = [flow("ingress", FIRST, MAIN, 7400, packets=5)]
    failed = run(rank(0), rank(1, "FAILED"), rank(2))
    report = judge_rehearsal(seen(failed, traffic=seen_traffic(dropped=blocked)))
    assert report.verdict == "failed"
    first, *_, last = report.runs[0].because
    assert first == (
        "sum/base worker-0 -> sum/base main-0 tcp 7400 was dropped: no ingress rule of sum/base main-0 lets it through"
    )
    assert last.startswith("rank 1 (worker-0) ended as FAILED")


def test_runs_with_the_same_addresses_are_not_confused() -> None:
    later = tuple(
        replace(node, run="tuned", address=address) for node, address in zip(NODES, (SECOND, MAIN, FIRST), strict=True)
    )
    both = read_traffic(
        [*((document(node), (node,)) for node in NODES), *((document(node), (node,)) for node in later)]
    )  # fmt: skip
    pairs = {both.pair(flow) for flow in both.flows if flow.direction == "ingress"}
    assert "sum/base worker-0 -> sum/base main-0 tcp 7400" in pairs
    assert not any("sum/base" in pair and "sum/tuned" in pair for pair in pairs)


def test_what_a_rank_was_refused_is_named() -> None:
    failed = run(rank(0), rank(1, "FAILED"), rank(2))
    assert "sum/base worker-0 lacks BUCKET_DELETE for DeleteBucket" in judge_rehearsal(seen(failed)).runs[0].because


def test_dropped_packets_do_not_fail_a_run_that_passed() -> None:
    dropped = [flow("egress", FIRST, "203.0.113.9", 80, packets=2)]
    report = judge_rehearsal(seen(traffic=seen_traffic(dropped=dropped)))
    assert report.verdict == "passed"
    (told,) = report.dropped
    assert "203.0.113.9" in told.pair
    assert told.missing == "no egress rule of sum/base worker-0 lets it through"


def test_late_packets_of_an_ended_connection_are_ignored() -> None:
    dropped = [flow("ingress", STORE, FIRST, 51528, packets=3)]
    (told,) = judge_rehearsal(seen(traffic=seen_traffic(dropped=dropped))).dropped
    assert told.missing == "late packets of a connection that the node had made and ended"


def test_a_rank_that_only_waited_never_joined() -> None:
    alone = RankSeen(NODES[1], "FAILED", "time", {"state": "waiting"})
    report = judge_rehearsal(seen(run(rank(0), alone, rank(2)), traffic=seen_traffic(flows=[])))
    assert "rank 1 (worker-0) ended as FAILED, and never joined: time" in report.runs[0].because


@pytest.mark.parametrize(
    ("verdicts", "verdict", "code"),
    [
        (["passed", "passed"], "passed", 0),
        (["passed", "not rehearsed"], "not rehearsed", 3),
        (["not rehearsed", "failed", "passed"], "failed", 1),
        ([], "passed", 0),
    ],
)
def test_the_worst_verdict_decides_and_has_its_exit_code(verdicts: Any, verdict: str, code: int) -> None:
    assert overall_verdict(verdicts) == verdict
    assert EXIT_CODES[verdict] == code


def test_a_job_that_cannot_run_here_does_not_pass() -> None:
    report = judge_rehearsal(seen(run(), RunSeen("deep", "base", "pytorch", reason="no local environment")))
    assert report.verdict == "not rehearsed"
    assert "deep/base: not rehearsed" in rehearsal_text(report)
    assert "no local environment" in rehearsal_text(report)


def test_without_a_firewall_the_port_rules_were_not_rehearsed() -> None:
    report = judge_rehearsal(seen(traffic=seen_traffic(enforced=False, reason="no privilege", rules=[], flows=[])))
    assert (report.runs[0].verdict, report.verdict) == ("passed", "not rehearsed")
    assert report.firewall == "not enforced: no privilege"
    assert "port rules, not enforced: no privilege: none" in rehearsal_text(report)
    assert "Port rules: none, not enforced: no privilege." in rehearsal_markdown(report)


def test_a_run_that_could_not_be_started_has_failed() -> None:
    report = judge_rehearsal(seen(RunSeen("sum", "base", "ring", failed="a user could not start it: 404")))
    assert (report.verdict, report.runs[0].because) == ("failed", ("a user could not start it: 404",))


def test_rules_and_statements_are_told_with_their_use() -> None:
    report = judge_rehearsal(seen())
    ingress = next(rule for rule in report.rules if rule.rule.startswith("ingress"))
    assert ingress.connections == 2
    assert "sum/base worker-1 -> sum/base main-0 tcp 7400" in ingress.pairs
    calls = {one.statement.split()[-1]: one.calls for one in report.statements}
    assert sorted(one.calls for one in report.statements) == [0, 2, 5], calls
    assert [(one.who, one.operation) for one in report.refused] == [("sum/base worker-0", "DeleteBucket")]


def test_a_verdict_on_an_inferred_permission_says_so() -> None:
    from components.oci.iam.permissions import is_documented, resource_types

    guessed = next(
        name for kind in resource_types().values() for name in sorted(kind.covers["manage"]) if not is_documented(name)
    )
    calls = tuple(
        replace(call, permissions=(guessed,), by=((guessed, *call.by[0][1:]),)) if call.operation == "GetJob" else call
        for call in seen_calls()
    )
    report = judge_rehearsal(seen(calls=calls))
    assert [one.inferred for one in report.statements if one.inferred] == [(guessed,)]
    assert f"[rests on inferred {guessed}]" in rehearsal_text(report)


def test_every_form_tells_verdict_rules_statements_and_what_is_not_proven() -> None:
    whole = seen()
    report = replace(
        judge_rehearsal(whole), proof=prove_by_mutations(whole.traffic, whole.calls, whole.access, whole.planned)
    )
    for form in RENDERERS.values():
        told = form(report)
        for words in ("passed", "tcp 7400", "data-science-jobs", "an empty one stands in", "sum/base"):
            assert words in told.lower() or words in told
    plain = json.loads(rehearsal_json(report))
    assert (plain["exitCode"], plain["verdict"], plain["proof"]["unexplained"]) == (0, "passed", 0)
    assert plain["runs"][0]["artifacts"] == [{"name": "sum.txt", "bytes": 1, "localOnly": False}]


def test_logs_and_files_are_escaped_in_markdown() -> None:
    evil = run(rank(0), RankSeen(NODES[1], "FAILED", "<img src=x>|a\n# b", None), rank(2))
    told = rehearsal_markdown(judge_rehearsal(seen(evil)))
    assert "<img" not in told
    assert "\n# b" not in told
    report = judge_rehearsal(seen())
    worst = replace(report.runs[0], job=PLANTED, run="a\\|b", because=(PLANTED,))
    told = rehearsal_markdown(replace(report, stack=PLANTED, runs=(worst,)))
    assert orders(told.encode()) == []
    rows = [line for line in told.splitlines() if "planted" in line and line.startswith("|")]
    # A cell more would be a backslash that the escape did not see.
    assert rows
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows} == {7}
    assert not re.search(r"(?<!\\)\]\(", told)
    assert "@c" not in told
