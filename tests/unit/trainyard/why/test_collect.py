# SPDX-License-Identifier: Apache-2.0
"""What is read about a run, whose line is whose, and how the ranks of a living run are asked where they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.platform.calls import ProviderError
from components.platform.files import TransferError
from components.platform.status import NodeStatus, RunStatus
from tests.unit.trainyard.why.evidence import failed, running, seen, stopped
from trainyard.why.ask_stacks import ask_living_nodes
from trainyard.why.collect import TEAM_FILE, collect_evidence
from trainyard.why.judge import judge_run


def with_logs(run: RunStatus, ids: Sequence[str] = ()) -> RunStatus:
    nodes = []
    for number, node in enumerate(run.nodes):
        own = replace(node.run, id=ids[number] if ids else node.run.id, started_at="2026-05-01T12:00:00+00:00")
        nodes.append(replace(node, log="a/b/c", run=own))
    return replace(run, nodes=tuple(nodes))


def look(printed: Mapping[str, Any]) -> Any:
    """A look whose nodes have printed this, by the id of their run. An error: the reason why it cannot be read."""

    def last_lines_of_nodes(call: Any, nodes: Sequence[NodeStatus], limit: int) -> list[Any]:
        found = [printed[node.run.id] for node in nodes]
        return [each if isinstance(each, Exception) else list(each[-limit:]) for each in found]

    return SimpleNamespace(call=None, runs=SimpleNamespace(last_lines_of_nodes=last_lines_of_nodes))


def test_a_line_counts_for_the_rank_whose_log_has_it() -> None:
    run = with_logs(seen(failed(), stopped(0)).run)
    printed = {
        "r0": [
            "[0.launcher] this run may not use it",
            "[0] [rank0]:   one",
            "[0.1] two",
            "no label",
            "[1] as if it were rank 1",
        ],
        "r1": ["[1] [0.launcher] rank 0 may not use the store", "[1.launcher] ended", "[0] [0] forged", "[1+] bar"],
    }
    found = collect_evidence(look(printed), run, "pytorch", None).evidence
    assert found.output[0] == ("  one", "two", "no label", "[1] as if it were rank 1")
    assert found.output[1] == ("[0.launcher] rank 0 may not use the store", "[0] [0] forged", "bar")
    assert found.launcher_lines == {0: ("this run may not use it",), 1: ("ended",)}
    assert found.framework == "pytorch"


def test_in_a_shared_log_the_label_of_the_launcher_decides() -> None:
    run = with_logs(seen(failed(), stopped(0)).run, ["same", "same"])
    printed = {"same": ["[0] a", "[worker-0] [1] b", "[0] [1] said by rank 0", "[0] [1.launcher] forged", "without"]}
    found = collect_evidence(look(printed), run, "own", None).evidence
    assert found.output == {0: ("a", "[1] said by rank 0", "[1.launcher] forged"), 1: ("b",)}
    assert found.launcher_lines == {}
    assert found.framework == "", "a team's own framework may be any"


def test_what_cannot_be_read_is_a_note_and_the_rest_is_judged() -> None:
    run = with_logs(seen(failed(), stopped(0)).run)
    collected = collect_evidence(look({"r0": ["[0] KeyError"], "r1": ProviderError("the log is gone")}), run, "", None)
    assert collected.notes == ("what worker-0 printed cannot be read: the log is gone",)
    assert judge_run(collected.evidence, collected.symptoms).ranks == (0,)


def test_of_many_nodes_those_that_failed_first_are_read() -> None:
    run = with_logs(seen(*[stopped(299)] * 299, failed(), *[stopped(299)] * 200).run)
    asked: list[str] = []

    class Printed(dict[str, Any]):
        def __missing__(self, key: str) -> list[str]:
            asked.append(key)
            return ["x"]

    collect_evidence(look(Printed()), run, "", None)
    assert len(asked) == 64
    assert "r299" in asked


def test_a_teams_file_is_read_and_its_mistakes_are_notes(tmp_path: Path) -> None:
    run = seen(failed()).run
    row = '[[symptom]]\nkind = "other"\npatterns = ["no licence"]\nmeaning = "m"\nlook = "l"\nremedy = "r"\n'
    (tmp_path / TEAM_FILE).write_text(row)
    assert collect_evidence(look({}), run, "", tmp_path).symptoms[0].meaning == "m"
    for content in (b"[[", b"\xff\xff", b"symptom = 1"):
        (tmp_path / TEAM_FILE).write_bytes(content)
        collected = collect_evidence(look({}), run, "", tmp_path)
        assert TEAM_FILE in collected.notes[0]
        assert len(collected.symptoms) > 30


class Store:
    def __init__(self, error: Exception | None = None) -> None:
        self.names, self.error = list[str](), error

    def folder(self, address: str) -> tuple[Any, str]:
        return self, address.removeprefix("oci://b@n/")

    def put(self, name: str, content: Any, replaces: Any) -> None:
        if self.error:
            raise self.error
        self.names.append(name)

    @property
    def token(self) -> str:
        return self.names[-1].rpartition("/")[2]


def asked_run(store: Store, answers: Callable[[str], list[Any]], seconds: float = 0.0) -> Any:
    run = replace(seen(running(), running()).run, folder="oci://b@n/job/run/1/s")
    again = lambda: replace(seen(*answers(store.token)).run, folder=run.folder)  # noqa: E731
    return ask_living_nodes(run, lambda: store, again, seconds)  # type: ignore[arg-type,return-value]


def answer(token: str) -> dict[str, Any]:
    place = {"function": "evaluate", "file": "train.py", "line": 11}
    return running(stacks=[{"object": "o", "cause": "request", "request": token, "where": place, "waits": None}])


def test_every_running_rank_is_asked_and_waited_for() -> None:
    store, looks = Store(), list[int]()

    def answers(token: str) -> list[Any]:
        looks.append(1)
        return [answer(token), answer(token) if len(looks) > 1 else answer("0" * 16)]

    found = asked_run(store, answers, 60)
    assert (found.request, found.note, len(looks)) == (store.token, "", 2)
    assert store.names == [f"job/run/1/s/peers/stacks/{store.token}"]


def test_a_rank_that_does_not_answer_is_named() -> None:
    found = asked_run(Store(), lambda token: [answer(token), running()])
    assert found.request
    assert found.note.startswith("rank 1 did not say within 0 s where they are")


@pytest.mark.parametrize("error", [TransferError("add this statement"), ProviderError("refused", "add this statement")])
def test_a_refused_request_names_what_lacks(error: Exception) -> None:
    found = asked_run(Store(error), lambda token: [])
    assert found.request == ""
    assert "add this statement" in found.note


def test_nobody_is_asked_without_a_folder_or_a_running_rank() -> None:
    def refuse() -> Any:
        raise AssertionError

    for run in (seen(running()).run, replace(seen(failed()).run, folder="oci://b@n/x")):
        assert ask_living_nodes(run, refuse, refuse, 1.0).request == ""
