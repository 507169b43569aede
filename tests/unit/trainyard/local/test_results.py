# SPDX-License-Identifier: Apache-2.0
"""`up` shows the last lines of the team's program, from the nodes that ran the command or failed."""

from __future__ import annotations

from components.platform.local import lost_lines, own_lines, reporting_nodes
from launcher.losses import ON_A_REAL_CLOUD, Loss, describe_losses
from tests.support.examples import plan

SAID = [
    "[0] epoch 1 loss 0.5",
    "[0.service] distributed.scheduler - INFO - Lost all workers",
    "[0.1.launcher] 1 file of output put into oci://bucket@ns/line/base/1/hd7ne2kq4wva/output",
    "[0.rendezvous] serves",
    "[0] done",
]


def test_services_and_the_launcher_are_left_out() -> None:
    assert own_lines(SAID) == ["[0] epoch 1 loss 0.5", "[0] done"]


def test_files_that_go_with_a_node_are_shown_as_its_launcher_names_them() -> None:
    named = list(describe_losses([Loss("big.bin", 51_000_000, "larger than 50 MB", inside=True)], bucket=True))
    assert len(named) == 3
    told = [f"[0.launcher] {line}" for line in ("1 file of output put into oci://b@n/x", *named, "ended")]
    assert lost_lines([*SAID, *told]) == named
    assert lost_lines(SAID) == []
    elsewhere = list(describe_losses([Loss("s.pt", 149_000_000, "larger than 50 MB", True)], True, ON_A_REAL_CLOUD))
    assert 'give the job `keep: ["s.pt"]`' in elsewhere[-1]
    assert lost_lines([*told, *(f"[0.launcher] {line}" for line in elsewhere)]) == [*named, *elsewhere]


def test_lines_without_words_are_not_shown() -> None:
    assert own_lines(["[0]", "[0] done", "[0.1] ", ""]) == ["[0] done"]
    assert own_lines(["[0.launcher] ", "[0.launcher] ended"]) == ["[0.launcher] ended"]


def test_where_nothing_else_was_printed_they_are_shown() -> None:
    assert own_lines(SAID[1:3]) == SAID[1:3]


def test_output_is_of_nodes_that_run_the_command_or_failed() -> None:
    run = plan("local").jobs["line"].runs["base"]
    states = {"scheduler-0": "SUCCEEDED", "worker-0": "SUCCEEDED", "worker-1": "FAILED"}
    nodes = [{"name": name, "state": state} for name, state in states.items()]
    assert [node["name"] for node in reporting_nodes(run, nodes)] == ["scheduler-0", "worker-1"]
