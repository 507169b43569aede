# SPDX-License-Identifier: Apache-2.0
"""Status and progress of runs, and ranks of job runs. For real ones see tests/flows/test_runs_command.py."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from components.oci.client import job_runs
from components.oci.client.logs import LogLine, find_node_name
from components.oci.client.status import _launched_nodes, _node_statuses, is_wanted
from components.platform.log_lines import split_prefix
from components.platform.status import WantedRuns, duration_text, parse_status, progress_text


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 s"), (59.9, "59 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")])
def test_durations_are_shown_in_two_units(seconds: float, words: str) -> None:
    assert duration_text(seconds) == words


@pytest.mark.parametrize(("report", "words"), [(None, ""), ("epoch 3", "epoch 3"), ({"step": 1}, "step 1")])
def test_progress_is_shown_whatever_a_script_wrote(report: Any, words: str) -> None:
    assert progress_text(report) == words


def test_a_line_says_its_rank_once() -> None:
    named = {("run0", ""): "0 main-0", ("group", "worker/2"): "2 worker-1"}
    assert split_prefix(
        find_node_name(LogLine(1, "a", "run0", "0", "[main-0] epoch 1"), named), "[main-0] epoch 1"
    ) == ("[0 main-0] ", "epoch 1")
    assert split_prefix(find_node_name(LogLine(1, "b", "run0", "0", "epoch 1"), named), "epoch 1") == (
        "[0 main-0] ",
        "epoch 1",
    )
    assert split_prefix(find_node_name(LogLine(1, "c", "group", "worker/2", "epoch 1"), named), "epoch 1") == (
        "[2 worker-1] ",
        "epoch 1",
    )


@pytest.mark.parametrize("content", [b"", b"[]", b"7", b"{", b"\xff\xfe", b"[" * 60_000, b'{"a":' * 20_000, b"NaN"])
def test_an_invalid_status_is_ignored(content: bytes) -> None:
    assert parse_status(content) is None


def launch(role: str, **more: Any) -> str:
    roles = [{"name": "main", "replicas": 1}, {"name": "worker", "replicas": 2}]
    return json.dumps({"role": role, "roles": roles, "attempt": 3, "folder": "oci://b@ns/job/run/3", **more})


def group(role: str) -> Any:
    configuration = SimpleNamespace(environment_variables={"TRAINYARD_LAUNCH": launch(role)})
    return SimpleNamespace(name=role, job_configuration_details=configuration)


def job_run(**more: Any) -> Any:
    fields: dict[str, Any] = {
        "id": "r", "compartment_id": "c", "display_name": "run", "lifecycle_state": "IN_PROGRESS",
        "lifecycle_details": "", "time_started": None, "time_finished": None, "freeform_tags": {},
        "log_details": SimpleNamespace(log_group_id="g", log_id="l"), "job_node_configuration_override_details": None,
        "job_configuration_override_details": None,
    }  # fmt: skip
    return SimpleNamespace(**{**fields, **more})


def test_node_groups_are_shown_rank_by_rank() -> None:
    groups = [group("main"), group("worker")]
    layout = SimpleNamespace(job_node_group_configuration_details_list=groups)
    shown = job_run(job_node_configuration_override_details=layout)
    launched = tuple(_launched_nodes(shown))
    assert [(one.role, one.ranks, one.attempt) for one in launched] == [("main", (0,), 3), ("worker", (1, 2), 3)]
    seen = list(_node_statuses(shown, launched))
    assert [(one.rank, one.run.name) for one in seen] == [(0, "main-0"), (1, "worker-0"), (2, "worker-1")]


def test_with_one_run_per_node_a_run_is_found_by_its_tag() -> None:
    variables = {
        "TRAINYARD_LAUNCH": launch("worker", folder=None, peers={"uri": "oci://b@ns/old"}),
        "MAIN_JOB_RUN_OCID": "ocid1.datasciencejobrun.oc1.iad.themain",
    }
    shown = job_run(
        freeform_tags={job_runs.NODE_TAG: "2/worker/worker-1"},
        job_configuration_override_details=SimpleNamespace(environment_variables=variables),
    )
    (launched,) = _launched_nodes(shown)
    assert launched.folder == "oci://b@ns/old/themain"
    (seen,) = _node_statuses(shown, (launched,))
    assert (seen.rank, seen.role, seen.run.name, seen.log) == (2, "worker", "worker-1", "c/g/l")


def test_a_run_that_trainyard_did_not_start_is_ignored() -> None:
    foreign = job_run(log_details=None)
    (launched,) = _launched_nodes(foreign)
    assert (launched.folder, launched.log, launched.attempt) == (None, None, 1)


def test_only_the_wanted_runs_are_shown() -> None:
    tags = {job_runs.RUN_TAG: "x", "stack": "s", "job": "j", "run": "r"}
    assert is_wanted(WantedRuns(), tags)
    assert is_wanted(WantedRuns("s", "j", "r"), tags)
    assert not is_wanted(WantedRuns("s", "k"), tags)
    assert not is_wanted(WantedRuns(), {"stack": "s"}), "a job run that trainyard did not start"
