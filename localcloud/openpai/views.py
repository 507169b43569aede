# SPDX-License-Identifier: Apache-2.0
"""Jobs and tasks in the REST server's format. Times are milliseconds since 1970."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from components.openpai.protocol.text import exit_of
from localcloud.openpai.attempts import encode_framework_name
from localcloud.openpai.framework import JobAttempt, job_state, task_state
from localcloud.openpai.job_store import JobRow, TaskRow
from localcloud.openpai.policies import SUCCEEDED
from localcloud.server.http import Json

_BEHAVIOURS = {"transient": "TRANSIENT", "permanent": "PERMANENT"}


def job_summary(job: JobRow, tags: Sequence[str]) -> Json:
    """A job in a list."""
    return {
        "debugId": encode_framework_name(job.name), "name": job.job, "username": job.user, "state": job.state,
        "subState": job.sub_state, "executionType": job.execution, "tags": list(tags), "retries": job.attempt,
        "retryDetails": _retry_counts(job), "retryDelayTime": None, "submissionTime": _milliseconds_of(job.submitted),
        "createdTime": _milliseconds_of(job.submitted), "launchedTime": _milliseconds_of(job.launched or job.completed),
        "completedTime": _milliseconds_of(job.completed), "appExitCode": job.code, "virtualCluster": job.cluster,
        "totalGpuNumber": job.gpus, "totalTaskNumber": job.tasks, "totalTaskRoleNumber": job.roles,
        "jobPriority": job.priority,
    }  # fmt: skip


def job_detail(
    job: JobRow, tags: Sequence[str], attempt: JobAttempt | None, latest: bool, tasks: Sequence[TaskRow]
) -> Json:
    """A job, with the tasks of one of its attempts."""
    end = attempt.end if attempt else None
    code = end.code if end else None
    status = {
        "username": job.user, "state": job.state, "subState": job.sub_state, "executionType": job.execution,
        "retries": job.attempt, "retryDetails": _retry_counts(job), "retryDelayTime": None,
        "submissionTime": _milliseconds_of(job.submitted), "createdTime": _milliseconds_of(job.submitted),
        "launchedTime": _milliseconds_of(job.launched or job.completed),
        "completedTime": _milliseconds_of(job.completed),
        "attemptId": attempt.number if attempt else 0, "attemptState": _attempt_state(job, attempt, latest),
        "appId": f"{attempt.number}_{attempt.uid}" if attempt else None, "appProgress": 1 if end else 0,
        "appTrackingUrl": "", "appCreatedTime": _milliseconds_of(attempt.started) if attempt else None,
        "appLaunchedTime": _milliseconds_of(attempt.launched or attempt.ended) if attempt else None,
        "appCompletedTime": _milliseconds_of(attempt.ended) if attempt else None, "appExitCode": code,
        "appExitSpec": exit_spec(code), **_end_facts(attempt),
        "appExitType": None if code is None else "Succeeded" if code == SUCCEEDED else "Failed",
        "virtualCluster": job.cluster,
    }  # fmt: skip
    return {
        "debugId": encode_framework_name(job.name), "name": job.job, "tags": list(tags), "jobPriority": None,
        "jobStatus": status,
        "taskRoles": _task_roles(tasks, lambda row: {**_task_facts(row), **_task_attempt(job, row)}),
    }  # fmt: skip


def job_attempt(job: JobRow, attempt: JobAttempt, latest: bool, tasks: Sequence[TaskRow]) -> Json:
    """An attempt of a job in the history of attempts."""
    end = attempt.end
    code = end.code if end else None

    def brief_task(row: TaskRow) -> Json:
        return {"taskIndex": row.index, "taskState": task_state(row.state, row.code), **_container_facts(job, row)}

    return {
        "jobName": job.job, "frameworkName": encode_framework_name(job.name), "uid": job.uid, "userName": job.user,
        "state": job.state if latest else job_state("Completed", code),
        "originState": job.sub_state if latest else "Completed", "attemptIndex": attempt.number,
        "isLatest": latest, "jobStartedTime": _milliseconds_of(job.submitted),
        "attemptStartedTime": _milliseconds_of(attempt.started),
        "attemptCompletedTime": _milliseconds_of(attempt.ended), "exitCode": code,
        "exitPhrase": exit_of(code).phrase if code is not None else None,
        "exitType": None if code is None else "Succeeded" if code == SUCCEEDED else "Failed",
        "exitDiagnostics": {"diagnosticsSummary": end.details, "runtime": None, "launcher": end.details}
        if end
        else None,
        **_end_facts(attempt), "appExitSpec": exit_spec(code), "totalGpuNumber": job.gpus,
        "totalTaskNumber": job.tasks, "totalTaskRoleNumber": job.roles, "jobPriority": None,
        "taskRoles": _task_roles(tasks, brief_task),
    }  # fmt: skip


def task_detail(job: JobRow, tries: Sequence[TaskRow]) -> Json:
    """A task with all its attempts, the last one first."""
    last = tries[-1]
    return {
        "username": job.user, "jobName": job.job, "jobAttemptId": last.job_attempt, "taskRoleName": last.role,
        **_task_facts(last), "attempts": [_task_attempt(job, row) for row in reversed(tries)],
    }  # fmt: skip


def why_waiting(job: JobRow, lacking: Sequence[str]) -> str:
    what = ", ".join(f"Insufficient {each}" for each in lacking)
    return f"Virtual cluster {job.cluster} is full: {what}."


def exit_spec(code: int | None) -> Json | None:
    """The facts of an exit code."""
    if code is None:
        return None
    known = exit_of(code)
    spec: Json = {"code": code, "phrase": known.phrase or "PAIRuntimeUnknownFailed"}
    spec["behavior"] = _BEHAVIOURS.get(known.kind, "UNKNOWN")
    return {**spec, "reason": known.words or "User command failed"}


def _task_roles(tasks: Sequence[TaskRow], shown: Any) -> Json:
    roles: Json = {}
    for row in tasks:
        role = roles.setdefault(row.role, {"taskRoleStatus": {"name": row.role}, "taskStatuses": []})
        role["taskStatuses"].append(shown(row))
    return roles


def _task_facts(row: TaskRow) -> Json:
    over = row.state == "Completed"
    return {
        "taskIndex": row.index, "taskUid": row.task_uid, "taskState": task_state(row.state, row.code),
        "retries": row.number, "accountableRetries": row.counted, "createdTime": _milliseconds_of(row.task_created),
        "launchedTime": _milliseconds_of(row.launched or row.ended),
        "completedTime": _milliseconds_of(row.ended) if over else None,
    }  # fmt: skip


def _task_attempt(job: JobRow, row: TaskRow) -> Json:
    return {
        "attemptId": row.number, "attemptState": task_state(row.state, row.code),
        "currentAttemptCreatedTime": _milliseconds_of(row.created),
        "currentAttemptLaunchedTime": _milliseconds_of(row.launched or row.ended),
        "currentAttemptCompletedTime": _milliseconds_of(row.ended), **_container_facts(job, row),
        # Each task has a node of its own, whose name is its address.
        "containerNodeName": f"node-{row.address.replace('.', '-')}" if row.address else None,
        "containerPorts": {label: ",".join(map(str, numbers)) for label, numbers in row.ports.items()},
        "containerExitSpec": exit_spec(row.code), "containerExitDiagnostics": row.details or None,
    }  # fmt: skip


def _container_facts(job: JobRow, row: TaskRow) -> Json:
    logs = (
        f"/api/v2/jobs/{quote(job.name, safe='~')}/attempts/{row.job_attempt}/taskRoles/{row.role}/taskIndex/"
        f"{row.index}/attempts/{row.number}/logs"
    )
    return {
        "containerId": row.id if row.address else None, "containerIp": row.address or None, "containerGpus": None,
        "containerLog": logs, "containerExitCode": row.code,
    }  # fmt: skip


def _end_facts(attempt: JobAttempt | None) -> Json:
    end = attempt.end if attempt else None
    return {
        "appExitDiagnostics": end.details if end else None,
        "appExitMessages": {"container": None, "runtime": None, "launcher": end.details} if end else None,
        "appExitTriggerMessage": (end.trigger or None) if end else None,
        "appExitTriggerTaskRoleName": (end.role or None) if end else None,
        "appExitTriggerTaskIndex": end.index if end else None,
    }


def _attempt_state(job: JobRow, attempt: JobAttempt | None, latest: bool) -> str:
    if attempt is None or attempt.ended is None:
        return job.state
    return job_state("Completed", attempt.end.code if attempt.end else None)


def _retry_counts(job: JobRow) -> Json:
    return {"user": job.counted, "platform": job.attempt - job.counted, "resource": 0}


def _milliseconds_of(moment: float | None) -> int | None:
    return None if moment is None else int(moment * 1000)
