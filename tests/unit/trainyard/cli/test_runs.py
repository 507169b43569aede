# SPDX-License-Identifier: Apache-2.0
"""The output of `trainyard runs`. For real runs see tests/flows/test_runs_command.py."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from components.oci.client.logs import LogLine, OciLogMerger
from components.platform.causes import find_cause
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus, parse_status
from provider.runs.lost import read_lost
from trainyard.cli.runs_text import about_node, run_blocks_text, runs_json
from trainyard.cli.runs_watch import Screen
from trainyard.runs.run_looks import ProgressHistory

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def node(rank: int, state: str = "IN_PROGRESS", **more: Any) -> NodeStatus:
    started = (NOW - timedelta(seconds=75)).isoformat()
    return NodeStatus(
        rank, NodeRun(f"worker-{rank}", f"run{rank}", state, started_at=started), "worker", "c/g/l", **more
    )


def run(*nodes: NodeStatus) -> RunStatus:
    return RunStatus("vision-prod", "resnet", "base", 2, NOW - timedelta(minutes=2), nodes)


def test_a_row_says_state_time_and_progress_of_each_rank() -> None:
    status_object = {
        "state": "waiting",
        "reason": "for rank 3",
        "progress": {"step": 12, "loss": 0.51234567},
        "tries": 2,
    }
    shown = run_blocks_text([run(node(0, launcher_status=status_object), node(1, "FAILED"))], NOW)
    assert "vision-prod resnet/base: FAILED, attempt 2" in shown
    rows = [line.split(maxsplit=2) for line in shown.split("\n")[2:]]
    assert rows[0] == ["0", "worker-0", "waiting  1 min 15 s  step 12, loss 0.512346; try 2; for rank 3"]
    assert rows[1][2].startswith("FAILED"), "what the platform says of an end wins over what the launcher said last"


def test_a_row_has_lost_files_and_the_progress_bar() -> None:
    largest = [{"name": "a\x1b[31m.bin", "bytes": 210_000_000, "files": 1, "why": "larger than 50 MB"}]
    lost = {"files": 3, "bytes": 212_000_000, "largest": largest, "remedy": "keep:"}
    assert about_node(node(0, launcher_status={"bar": " 5%|#", "lost": lost})) == " 5%|#; 3 files (212.0 MB) not kept"
    assert about_node(node(0, launcher_status={"bar": " 5%|#", "progress": {"step": 3}})) == "step 3"
    read = read_lost({"lost": lost})
    assert read is not None
    (file,) = read.largest
    assert (file.size, file.why) == (210_000_000, "larger than 50 MB")
    wrong: list[Any] = [None, [], {"files": "x"}, {"files": -1}, {"files": True}, {"files": 2**80}]
    assert [read_lost({"lost": one}) for one in wrong] == [None] * len(wrong)
    strange = read_lost({"lost": {"files": 1, "bytes": None, "largest": [1, {"name": 3}] * 99, "remedy": ["x"]}})
    assert strange is not None
    assert len(strange.largest) == 5


def test_programs_are_given_everything() -> None:
    (plain,) = json.loads(runs_json([run(node(0, launcher_status={"state": "running"}))]))
    assert (plain["stack"], plain["job"], plain["run"], plain["attempt"]) == ("vision-prod", "resnet", "base", 2)
    assert plain["nodes"][0]["launcher"] == {"state": "running"}
    assert plain["machines"] == []
    (unknown,) = json.loads(runs_json([run(node(0))], None))
    assert unknown["machines"] is None


def test_piped_output_has_only_changes(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(ProgressHistory(lambda run: {}), is_terminal=False)
    screen.show([run(node(0), node(1))], NOW)
    screen.show([run(node(0), node(1))], NOW)
    screen.show([run(node(0), node(1, "SUCCEEDED"))], NOW)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "12:00:00 resnet/base rank 0 worker-0: IN_PROGRESS",
        "12:00:00 resnet/base rank 1 worker-1: IN_PROGRESS",
        "12:00:00 resnet/base rank 1 worker-1: SUCCEEDED",
    ]


def test_on_a_terminal_the_table_is_redrawn_in_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "4")
    screen = Screen(ProgressHistory(lambda run: {}), is_terminal=True)
    screen.show([run(node(0), node(1), node(2))], NOW)
    screen.show([run(node(0), node(1), node(2))], NOW)
    first, second = capsys.readouterr().out.split("\x1b[J")[1:]
    assert first.endswith("\x1b[3F"), "as many lines up as were drawn, and no more than the terminal has"
    assert max(map(len, second.rstrip("\n").split("\n"))) < 40


def test_lines_are_merged_by_time_without_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        LogLine(3, "c", "run0", "", "third"),
        LogLine(1, "a", "run0", "", "first"),
        LogLine(2, "b", "run1", "", "second"),
    ]
    monkeypatch.setattr("components.oci.client.logs.lines_since", lambda *_: iter(lines))
    merged = OciLogMerger(None, None)  # type: ignore[arg-type]  # neither is asked: the lines are given
    seen = [run(node(0), node(1))]
    assert list(merged.new(seen)) == ["[0 worker-0] first", "[1 worker-1] second", "[0 worker-0] third"]
    lines.append(LogLine(4, "d", "run1", "", "fourth"))
    assert list(merged.new(seen)) == ["[1 worker-1] fourth"]


def test_one_rank_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [LogLine(1, "a", "run0", "", "of 0"), LogLine(2, "b", "run1", "", "of 1")]
    monkeypatch.setattr("components.oci.client.logs.lines_since", lambda *_: iter(lines))
    merged = OciLogMerger(None, None, ranks=frozenset({1}))  # type: ignore[arg-type]
    assert list(merged.new([run(node(0), node(1))])) == ["[1 worker-1] of 1"]


HOSTILE: dict[str, Any] = {
    "rank": [], "state": {"a": 1}, "code": "x", "reason": ["\x1b[2J"], "tries": "many", "waitedSeconds": float("nan"),
    "firstStepSeconds": [1], "progress": [1, {"loss": float("-inf")}, "\x1b]0;title\x07"], "culprit": "1", "at": 7,
    "more": "x" * 10,
}  # fmt: skip
DEEP: Any = 1
for _ in range(500):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "content",
    [
        HOSTILE,
        {**HOSTILE, "state": "failed", "reason": "x" * 60_000, "progress": "y" * 60_000},
        {"state": "failed", "reason": "\x1b[31mred\nsecond line", "progress": {"\x1b[2J": "\ud800"}, "culprit": 10**30},
        {"state": "running", "tries": 10**4000, "progress": 10**4000, "code": True},
        {"progress": {str(number): number for number in range(1000)}, "tries": -1},
        {"progress": DEEP},
        {"progress": [[[float("inf")] * 1000] * 3] * 3},
    ],
    ids=range(7),
)
def test_any_status_is_escaped(content: Any) -> None:
    status_object = parse_status(json.dumps(content).encode())
    assert status_object is not None
    seen = [run(node(0, "FAILED", launcher_status=status_object), node(1, launcher_status=status_object))]

    def refuse(name: str) -> None:
        pytest.fail(f"{name} is not JSON")

    plain = json.loads(runs_json(seen), parse_constant=refuse)
    assert len(json.dumps(plain)) < 20_000
    screen = Screen(ProgressHistory(lambda run: {}), is_terminal=False)
    for shown in (run_blocks_text(seen, NOW), run_blocks_text(seen, NOW, colour=True), *screen._changes(seen, NOW)):
        written = shown.replace("\x1b[31m", "", 1).replace("\x1b[1m", "", 1).replace("\x1b[0m", "", 1)
        assert not any(ord(letter) < 32 and letter != "\n" for letter in written)
        assert max(map(len, shown.split("\n"))) < 2000


def written(state: str, reason: str, **more: Any) -> dict[str, Any]:
    return {"state": state, "reason": reason, **more}


STALL = "stalled: no output on any rank for 30 min (`stallMinutes`)"


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        ([None, None], None),
        ([written("running", ""), None], None),
        ([written("stopped", "rank 1 (worker-1) failed first", culprit=1), written("failed", "ended with code 3")],
         "rank 1 (worker-1) failed first: ended with code 3"),
        ([written("stopped", "stopped: rank 1 (worker-1) was lost", culprit=1), written("running", "")],
         "rank 1 (worker-1) was lost"),
        # An older launcher names nobody.
        ([written("stopped", "stopped: rank 1 (worker-1) failed with code 3"), written("failed", "ended with code 3")],
         "rank 1 (worker-1) failed first: ended with code 3"),
        ([written("failed", "ended with code 4", at="2026-05-01T12:00:09Z"),
          written("failed", "ended with code 3", at="2026-05-01T12:00:02Z")],
         "rank 1 (worker-1) failed first: ended with code 3"),
        ([written("failed", STALL), written("stopped", STALL)], STALL),
        ([written("stopped", "x", culprit=99), None], "rank 99 (?) failed first: x"),
    ],
)  # fmt: skip
def test_the_first_failure_is_named(statuses: list[Any], words: str | None) -> None:
    found = find_cause(run(*(node(rank, "FAILED", launcher_status=one) for rank, one in enumerate(statuses))))
    assert (found.words if found else None) == words


def test_a_row_says_that_a_node_tries_again_whatever_the_platform_says_of_it() -> None:
    going = NodeRun("worker-0", "run0", "IN_PROGRESS", details="Job run in progress")
    again = {**written("retrying", "code 75: 3 in a row, not counted"), "tries": 3}
    assert (
        about_node(NodeStatus(0, going, "worker", launcher_status=again)) == "try 3; code 75: 3 in a row, not counted"
    )
    assert (
        about_node(NodeStatus(0, going, "worker", launcher_status={**again, "state": "running", "reason": ""}))
        == "try 3; " + going.details
    )


def test_a_row_says_what_the_launcher_knows_of_a_failure_and_the_platform_of_a_cancellation() -> None:
    ended = written("stopped", "rank 1 (worker-1) failed first, with code 3")
    failed = NodeRun("worker-0", "run0", "FAILED", details="exited with code 3")
    assert about_node(NodeStatus(0, failed, "worker", launcher_status=ended)) == ended["reason"]
    canceled = NodeRun("worker-0", "run0", "CANCELED", details="cancelled by a user")
    assert (
        about_node(NodeStatus(0, canceled, "worker", launcher_status=written("failed", "was asked to end")))
        == "cancelled by a user"
    )
    assert about_node(NodeStatus(0, failed, "worker", launcher_status=written("running", ""))) == "exited with code 3"
    refused = NodeRun("worker-0", "run0", "FAILED", details="exited with code 78")
    assert about_node(NodeStatus(0, refused, "worker")) == (
        "exited with code 78: its launcher could write no status; its last lines say why"
    )
