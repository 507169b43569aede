# SPDX-License-Identifier: Apache-2.0
"""The output of `trainyard runs why`. For real runs see tests/flows/test_preflight.py."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import click
import pytest

from components.platform.status import WantedRuns
from tests.unit.trainyard.why.evidence import LOST_PEER, dropped, failed, running, seen, stopped, traceback
from trainyard.cli.runs_text import about_run, problems_of
from trainyard.cli.runs_why import framework_of_job, the_selected_run, verdict_json, verdict_lines
from trainyard.why.collect import Collected
from trainyard.why.judge import judge_run, known_cause
from trainyard.why.model import RunEvidence
from trainyard.why.symptoms import known_symptoms


def shown(evidence: RunEvidence, *notes: str) -> str:
    verdict = judge_run(evidence, known_symptoms())
    return "\n".join(verdict_lines(evidence.run, verdict, Collected(evidence, (), notes), colour=False))


def test_the_verdict_comes_first_and_then_its_evidence() -> None:
    text = shown(seen(stopped(1), failed(), output={1: traceback("ValueError: no")}), "the log of worker-2")
    head, cause, certainty, ranks, line, *rest = text.splitlines()
    assert head.startswith("s job/base: FAILED")
    assert cause == "rank 1 (worker-0) failed first: ended with code 1: ValueError: no (train.py:11, in evaluate)"
    assert [row.split(maxsplit=1) for row in (certainty, ranks, line)] == [
        ["certainty", "certain: something outside of the nodes shows it, or two kinds of evidence agree"],
        ["ranks", "rank 1"],
        ["line", "train.py:11"],
    ]
    kinds = [row.split()[0] for row in rest[rest.index("evidence, the strongest first:") + 1 :]]
    assert kinds == ["platform", "launcher", "launcher", "launcher", "output", "not"]
    assert rest[-1] == "not known: the log of worker-2"


def test_an_unknown_cause_says_where_to_look() -> None:
    assert "  certainty  unknown: look at where the other ranks were" in shown(seen(stopped(1), failed(LOST_PEER)))
    assert "certainty" not in shown(seen(running(), running()))


def test_words_of_others_are_escaped() -> None:
    hostile = "\x1b[2J##[error]x\r\ud800"
    evidence = seen(failed(hostile), details=(hostile,), drops=[dropped(hostile)], output={0: traceback(hostile)})
    assert "\x1b" not in shown(evidence, hostile)
    assert "##[" not in shown(evidence, hostile)
    verdict = judge_run(evidence, known_symptoms())
    read = json.loads(verdict_json(evidence.run, verdict, [hostile]))
    assert (read["stack"], read["job"], read["run"], read["attempt"], read["state"]) == (
        "s",
        "job",
        "base",
        1,
        "FAILED",
    )
    assert {"kind", "cause", "certainty", "ranks", "line", "rule", "remedy", "look", "evidence", "notes"} <= set(read)


def test_other_commands_show_the_first_line() -> None:
    run = seen(stopped(1), failed(LOST_PEER), drops=[dropped()]).run
    cause = "worker-0 cannot reach main-0 on TCP 29400: no egress rule of worker-0 lets it through"
    assert known_cause(run) == about_run(run) == cause
    first, second = problems_of(run)
    assert first == cause
    assert second.startswith("dropped: worker-0 -> main-0 tcp 29400, 33 packets")
    assert known_cause(seen(running(), running()).run) == ""
    assert known_cause(seen(None, None).run) == "", "nothing but an exit code"


def selection(*titles: str, **wanted: Any) -> Any:
    runs = [SimpleNamespace(title=title) for title in titles]
    return SimpleNamespace(wanted=WantedRuns(**wanted), runs=lambda: runs)


def test_one_run_is_explained() -> None:
    with pytest.raises(click.UsageError, match="Give STACK and JOB/RUN"):
        the_selected_run(selection(stack="s"))
    with pytest.raises(click.UsageError, match="which of 2 runs"):
        the_selected_run(selection("a/x", "a/y", stack="s", job="a"))
    assert the_selected_run(selection("a/x", stack="s", job="a")).title == "a/x"


@pytest.mark.parametrize(
    ("jobs", "framework"),
    [({"a": {"framework": "ray"}}, "ray"), ('{"a": {"framework": "ray"}}', "ray"), ({"a": 3}, ""), ("[", ""),
     (None, ""), ([1], ""), ({"a": {"framework": 3}}, "")],
)  # fmt: skip
def test_the_framework_is_read_from_any_file(jobs: Any, framework: str) -> None:
    where = SimpleNamespace(config={"trainyard:jobs": jobs})
    assert framework_of_job(SimpleNamespace(where=where), "a") == framework  # type: ignore[arg-type]
