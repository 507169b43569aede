# SPDX-License-Identifier: Apache-2.0
"""The states of nodes, from the cluster's status of the job, without a cluster."""

from dataclasses import replace
from typing import Any

import pytest

from components.openpai.client.task_states import JobDetail, task_node_run
from components.openpai.protocol.text import exit_of
from components.platform.runs import NodeRun

BEGAN, ENDED = 1_700_000_000_000, 1_700_000_060_000
BEGAN_TEXT = "2023-11-14T22:13:20.000Z"
WORKER = NodeRun("worker-1", "openpai/anna~train-0123abcd/worker/1", "")
RUNNING = {"taskState": "RUNNING", "launchedTime": BEGAN}
FAILED = {"taskState": "FAILED", "launchedTime": BEGAN, "completedTime": ENDED, "containerExitCode": 1}
LATE = {**FAILED, "containerExitCode": 255}
NEVER = {"taskState": "FAILED", "launchedTime": ENDED, "completedTime": ENDED, "containerExitCode": -200}
STOPPED = {"taskState": "STOPPED", "launchedTime": BEGAN, "completedTime": ENDED, "containerExitCode": -220}
DONE = {"taskState": "SUCCEEDED", "launchedTime": BEGAN, "completedTime": ENDED, "containerExitCode": 0}


def _detail(state: str, task: dict[str, Any], other: dict[str, Any] = RUNNING, **status: Any) -> JobDetail:
    rows = [{"taskIndex": 0, **other}, {"taskIndex": 1, **task}]
    return JobDetail({"jobStatus": {"state": state, **status}, "taskRoles": {"worker": {"taskStatuses": rows}}})


@pytest.mark.parametrize(
    ("detail", "state", "says"),
    [
        (_detail("WAITING", {"taskState": "WAITING"}), "ACCEPTED", "waits for a GPU"),
        (_detail("RUNNING", RUNNING), "IN_PROGRESS", ""),
        (
            _detail("RUNNING", {**RUNNING, "retries": 2, "accountableRetries": 1}),
            "IN_PROGRESS",
            "attempt 3 of its task",
        ),
        (_detail("RUNNING", RUNNING, retries=1, retryDetails={"user": 0}), "IN_PROGRESS", "attempt 2, 0 counted"),
        (_detail("RUNNING", DONE), "SUCCEEDED", ""),
        (_detail("RUNNING", FAILED), "IN_PROGRESS", "exit code 1; the job goes on"),
        (_detail("STOPPING", RUNNING), "CANCELING", ""),
        (_detail("RUNNING", RUNNING, executionType="STOP"), "CANCELING", ""),
        (_detail("SUCCEEDED", DONE), "SUCCEEDED", ""),
        (_detail("SUCCEEDED", STOPPED), "SUCCEEDED", ""),
        (_detail("SUCCEEDED", FAILED), "SUCCEEDED", "the job did without it"),
        (_detail("STOPPED", STOPPED), "CANCELED", "stopped"),
        (_detail("STOPPED", {**FAILED, "containerExitCode": 143}), "CANCELED", "stopped"),
        (_detail("FAILED", FAILED), "FAILED", "exit code 1"),
        (_detail("FAILED", {**FAILED, "containerExitCode": 137}), "FAILED", "killed (SIGKILL)"),
        (replace(_detail("FAILED", LATE), maximum_minutes=1), "FAILED", "after 1 minute, its maximumRuntimeMinutes"),
        (replace(_detail("FAILED", LATE), maximum_minutes=2), "FAILED", "the program ended with 255"),
        (replace(_detail("FAILED", FAILED), maximum_minutes=1), "FAILED", "exit code 1"),
        (_detail("FAILED", STOPPED, other=FAILED), "CANCELED", "when the job failed"),
        (_detail("FAILED", DONE, other=FAILED), "SUCCEEDED", ""),
        (_detail("FAILED", STOPPED, other=STOPPED, appExitCode=-1100), "FAILED", "-1100: the cluster refused the job"),
        (_detail("FAILED", {}, appExitTriggerMessage="\x1b[2Jbad"), "FAILED", "[2Jbad"),
        (JobDetail({"jobStatus": {"state": "WAITING"}, "taskRoles": None}), "ACCEPTED", "waits for a GPU"),
        (JobDetail({}), "ACCEPTED", "waits for a GPU"),
    ],
)
def test_the_job_decides_how_its_nodes_are(detail: JobDetail, state: str, says: str) -> None:
    node = task_node_run(WORKER, detail, "waits for a GPU")
    assert (node.name, node.id, node.state) == (WORKER.name, WORKER.id, state)
    assert says in node.details
    assert "\x1b" not in node.details
    assert bool(node.finished_at) <= node.over


@pytest.mark.parametrize(
    ("detail", "began"),
    [
        (_detail("RUNNING", RUNNING), True),
        (_detail("FAILED", FAILED), True),
        (_detail("FAILED", {**FAILED, "launchedTime": ENDED}), True),  # the API counts whole seconds
        (_detail("FAILED", NEVER), False),
        (_detail("FAILED", {**FAILED, "containerExitCode": 254}), False),  # the runtime's part ran, the program did not
        (_detail("FAILED", {**STOPPED, "launchedTime": ENDED}), False),
        (_detail("WAITING", {"taskState": "WAITING"}, launchedTime=BEGAN), False),
        (_detail("WAITING", {"taskState": "WAITING"}, launchedTime=BEGAN, retries=1), True),
    ],
)
def test_a_task_that_never_began_has_no_start_though_the_cluster_fills_one_in(detail: JobDetail, began: bool) -> None:
    assert bool(task_node_run(WORKER, detail).started_at) is began


def test_times_have_their_zone() -> None:
    assert task_node_run(WORKER, _detail("RUNNING", RUNNING)).started_at == BEGAN_TEXT


@pytest.mark.parametrize(
    ("code", "kind"), [(1, "unknown"), (137, "transient"), (-1200, "permanent"), (-7, "unknown"), (300, "unknown")]
)
def test_every_code_has_a_kind(code: int, kind: str) -> None:
    assert exit_of(code).kind == kind
    assert exit_of(code).text.startswith(f"exit code {code}")


def test_a_task_is_looked_up_by_the_name_that_the_controller_gives_its_role() -> None:
    node = replace(WORKER, id="openpai/anna~train-0123abcd/Wor_ker/1")
    assert task_node_run(node, _detail("RUNNING", RUNNING)).state == "IN_PROGRESS"
