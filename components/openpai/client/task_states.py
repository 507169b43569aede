# SPDX-License-Identifier: Apache-2.0
"""The states of a run's nodes, from the cluster's response about its job. Pure.

The job decides, not its tasks: while the job lives, a failed task may be retried, or the job may continue without it.
When the job has succeeded, tasks that it stopped or did not need are no failures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from components.openpai.client.jobs import RunId, moment_of
from components.openpai.protocol.text import STOPPED, code_in, exit_of
from components.platform.runs import DELETED, NodeRun
from launcher.escaping import terminal_line

_OVER = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
_LONGEST_DETAILS = 2000
# Exit codes of a task after its time limit: that of `timeout`, that of the runtime for small codes, and killed.
_OF_A_LIMIT = frozenset({124, 255, 137})


def deleted_job_node(node: NodeRun) -> NodeRun:
    return NodeRun(node.name, node.id, DELETED, "the cluster no longer has its job")


@dataclass(frozen=True)
class JobDetail:
    """The response to `GET …/jobs/{user}~{job}`. Any field may be missing, because releases of OpenPAI differ."""

    content: Mapping[str, Any]
    # The time limit of the run's tasks. None if it is not known.
    maximum_minutes: int | None = None

    @cached_property
    def status(self) -> Mapping[str, Any]:
        return _mapping_or_empty(self.content.get("jobStatus"))

    @property
    def state(self) -> str:
        return str(self.status.get("state") or "")

    @property
    def over(self) -> bool:
        return self.state in _OVER

    @property
    def stopping(self) -> bool:
        return not self.over and (self.state == "STOPPING" or self.status.get("executionType") == "STOP")

    @property
    def attempt(self) -> int:
        """The number of the tasks' attempt, from 0."""
        return code_in(self.status, "attemptId") or 0

    @cached_property
    def tasks(self) -> Mapping[tuple[str, int], Mapping[str, Any]]:
        """Every task of the last attempt, by its role and index."""
        made: dict[tuple[str, int], Mapping[str, Any]] = {}
        for role, value in _mapping_or_empty(self.content.get("taskRoles")).items():
            rows = _mapping_or_empty(value).get("taskStatuses")
            for row in rows if isinstance(rows, list) else ():
                index = code_in(_mapping_or_empty(row), "taskIndex")
                if index is not None:
                    made[str(role), index] = row
        return made

    @cached_property
    def failed(self) -> bool:
        """Whether a task itself failed. If none did, the job's own end is that of all its nodes."""
        return any(task.get("taskState") == "FAILED" for task in self.tasks.values())

    @property
    def why(self) -> str:
        """The cluster's reason for the end of the job."""
        code = code_in(self.status, "appExitCode")
        words = exit_of(code).text if code is not None else ""
        first = _first_line(self.status.get("appExitTriggerMessage") or self.status.get("appExitDiagnostics"))
        return "; ".join(part for part in (words, first) if part) or "no reason given"

    @property
    def retried(self) -> str:
        """The number of the job's retries in words, or ""."""
        retries, details = code_in(self.status, "retries") or 0, _mapping_or_empty(self.status.get("retryDetails"))
        if not retries:
            return ""
        counted = code_in(details, "user")
        return f"attempt {retries + 1}" + (f", {counted} counted as retries" if counted is not None else "")


def task_node_run(node: NodeRun, detail: JobDetail, waits: str = "") -> NodeRun:
    """The node's current state. `waits`: the reason why the job has not begun."""
    run = RunId.parse(node.id)
    task = detail.tasks.get(run.task_key, {}) if run else {}
    state, details = _state_of_ended_job(task, detail) if detail.over else _state_of_living_job(task, detail, waits)
    started = None
    if task.get("taskState") not in (None, "WAITING"):
        # For a task that never began, the cluster gives the time of its end.
        started = moment_of(task.get("launchedTime")) if _has_begun(task) else None
    elif detail.retried and not detail.over:
        started = moment_of(detail.status.get("launchedTime"))
    made = NodeRun(node.name, node.id, state, terminal_line(details)[:_LONGEST_DETAILS], started)
    if not made.over:
        return made
    return replace(
        made, finished_at=moment_of(task.get("completedTime")) or moment_of(detail.status.get("completedTime"))
    )


def _state_of_living_job(task: Mapping[str, Any], detail: JobDetail, waits: str) -> tuple[str, str]:
    state = task.get("taskState")
    if state == "SUCCEEDED":
        return "SUCCEEDED", ""
    if detail.stopping:
        return "CANCELING", "the job is being stopped"
    if state in ("FAILED", "STOPPED"):
        return "IN_PROGRESS", f"its task ended with {_task_words(task, detail)}; the job goes on"
    if state == "RUNNING":
        return "IN_PROGRESS", _retries_text(task, detail)
    return "ACCEPTED", "; ".join(part for part in (_retries_text(task, detail), waits) if part)


def _state_of_ended_job(task: Mapping[str, Any], detail: JobDetail) -> tuple[str, str]:
    state = task.get("taskState")
    if detail.state == "SUCCEEDED":
        without = state == "FAILED"
        return (
            "SUCCEEDED",
            f"its task ended with {_task_words(task, detail)}; the job did without it" if without else "",
        )
    if state == "SUCCEEDED":
        return "SUCCEEDED", ""
    if detail.state == "STOPPED":
        return "CANCELED", "the job was stopped"
    tried = _retries_text(task, detail)
    if state == "FAILED":
        # If the program itself failed, its last lines say more.
        why = "" if _has_begun(task) else _first_line(task.get("containerExitDiagnostics"))
        return "FAILED", "; ".join(part for part in (_task_words(task, detail), why, tried) if part)
    if detail.failed:
        return "CANCELED", "it was stopped when the job failed"
    return "FAILED", "; ".join(part for part in (detail.why, tried) if part)


def _task_words(task: Mapping[str, Any], detail: JobDetail) -> str:
    code = code_in(task, "containerExitCode")
    began, ended, minutes = code_in(task, "launchedTime"), code_in(task, "completedTime"), detail.maximum_minutes
    ran_minutes = (ended - began) / 60_000 if began is not None and ended is not None else -1.0
    if code in _OF_A_LIMIT and minutes is not None and ran_minutes >= minutes:
        limit = "1 minute" if minutes == 1 else f"{minutes} minutes"
        return f"exit code {code}: it was ended after {limit}, its maximumRuntimeMinutes"
    return exit_of(code).text if code is not None else "no exit code"


def _retries_text(task: Mapping[str, Any], detail: JobDetail) -> str:
    """The task's own retries if it has some, or else the job's."""
    retries, counted = code_in(task, "retries") or 0, code_in(task, "accountableRetries")
    if not retries:
        return detail.retried
    return f"attempt {retries + 1} of its task" + (f", {counted} counted as retries" if counted is not None else "")


def _has_begun(task: Mapping[str, Any]) -> bool:
    """Whether the task's program began. A task that has ended always has a launch time."""
    code = code_in(task, "containerExitCode")
    stopped = code in STOPPED and task.get("launchedTime") == task.get("completedTime")
    return not stopped and (code is None or exit_of(code).began)


def _mapping_or_empty(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first_line(text: Any) -> str:
    lines = text.strip().splitlines() if isinstance(text, str) else []
    return lines[0] if lines else ""
