# SPDX-License-Identifier: Apache-2.0
"""Each planned connection in the report, by what launchers say: open, closed, or not tested."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus
from tests.support.samples import job, plan
from tests.unit.trainyard.rehearsal.recorded import seen as recorded
from trainyard.rehearsal.judgement import judge_rehearsal, with_preflights
from trainyard.rehearsal.model import PreflightResult
from trainyard.rehearsal.preflight_runs import judge_preflight
from trainyard.rehearsal.report import rehearsal_json, rehearsal_markdown, rehearsal_text

# Three nodes: the workers meet at main-0 on 29400, and all exchange data.
TRAIN = plan(jobs={"train": job()}).jobs["train"]
SENTENCE = "worker-1 cannot reach main-0 on TCP 29400 (rendezvous). Add to the rules"
# As launcher/preflight.py writes it.
TESTED = {"seconds": 0.2, "connections": 5, "closed": [], "findings": [], "warnings": []}
CLOSED = {**TESTED, "closed": ["rendezvous/29400/0"], "findings": [SENTENCE]}


def ended(*tests: Any, state: str = "SUCCEEDED", details: str = "") -> RunStatus:
    nodes = tuple(
        NodeStatus(rank, NodeRun(name, f"id-{rank}", state, details), "worker", None, test and {"preflight": test})
        for rank, (name, test) in enumerate(zip(("main-0", "worker-0", "worker-1"), tests, strict=True))
    )
    return RunStatus("demo", "train", "base", 8000, datetime.now(UTC), nodes)


def judged(seen: RunStatus | None, why: str = "") -> PreflightResult:
    return judge_preflight(TRAIN, "train/base", seen, why)


def states(result: PreflightResult) -> dict[tuple[str, str, str], bool | None]:
    return {(one.label, one.source, one.target): one.open for one in result.connections}


def test_every_planned_pair_is_open_or_closed() -> None:
    result = judged(ended(TESTED, TESTED, {**CLOSED, "findings": []}))
    found = states(result)
    assert len(found) == 2 + 6, "two ways to the rendezvous, and data between all"
    assert {pair for pair, is_open in found.items() if not is_open} == {("rendezvous", "worker-1", "main-0")}
    assert all(is_open is not None for is_open in found.values())


@pytest.mark.parametrize(
    ("seen", "why", "untested"),
    [
        (None, "the users could not start it: capacity", "the users could not start it: capacity"),
        (ended(None, None, None), "", "no port could be tested"),
        (ended(TESTED, TESTED, None, state="FAILED", details="killed"), "", "killed"),
        (ended({**TESTED, "connections": 0}, None, None), "", "no port could be tested"),
    ],
)
def test_what_was_not_tested_is_said_and_counts_as_neither(seen: RunStatus | None, why: str, untested: str) -> None:
    result = judged(seen, why)
    assert result.untested == untested
    assert set(states(result).values()) == {None}


def test_a_closed_connection_fails_the_rehearsal_because_real_runs_would_end_before_they_train() -> None:
    result = judged(ended({**TESTED, "findings": [SENTENCE]}, TESTED, CLOSED, state="FAILED", details=SENTENCE))
    report = judge_rehearsal(recorded())
    assert with_preflights(report, [judged(ended(TESTED, TESTED, TESTED))]).verdict == "passed"
    failed = with_preflights(report, [result])
    assert (failed.verdict, failed.exit_code) == ("failed", 1)
    text = rehearsal_text(failed)
    assert "CLOSED  train/base tcp 29400 (rendezvous)" in text
    assert "open    train/base tcp 29500-29563 (data)" in text
    assert text.count(SENTENCE) == 1
    assert "| CLOSED |" in rehearsal_markdown(failed)
    (told,) = json.loads(rehearsal_json(failed))["preflight"]
    assert told["findings"] == [SENTENCE]
    assert {"source": "worker-1", "target": "main-0", "label": "rendezvous", "ports": "29400", "open": False} in told[
        "connections"
    ]
