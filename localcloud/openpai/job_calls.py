# SPDX-License-Identifier: Apache-2.0
"""Calls about existing jobs: lists, details, configuration, stop, tags, events, tasks, and addresses of logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from components.openpai.protocol import controller_name
from localcloud.openpai import views
from localcloud.openpai.attempts import attempt_log_folder, encode_framework_name
from localcloud.openpai.framework import JobAttempt, Task
from localcloud.openpai.job_store import JobRow, JobStore, TaskRow
from localcloud.openpai.logs import LOG_MANAGER_PORT, log_names
from localcloud.openpai.rest import RestCall, parse_call_number
from localcloud.openpai.rest_errors import (
    forbidden_user,
    invalid_parameters,
    no_attempt,
    no_job,
    no_tag,
    no_task,
    no_task_log,
)
from localcloud.server import http
from localcloud.server.http import Json, Reply

_MOST, _USUAL = 50_000, 5_000
# Filters of a query, and their columns.
_FILTERS = {"username": "user", "vc": "cluster", "state": "state"}
_ORDERS = {
    "jobName": "job", "submissionTime": "submitted", "username": "user", "vc": "cluster", "retries": "attempt",
    "totalTaskNumber": "tasks", "totalGpuNumber": "gpus", "state": "state", "completionTime": "completed",
    "jobPriority": "priority",
}  # fmt: skip
_TAGGED = "name IN (SELECT job FROM tags WHERE tag IN ({marks}))"
_LONGEST_TAG = 512


def list_summaries(store: JobStore, query: Mapping[str, str]) -> Any:
    """Summaries of jobs, with their total number if the query asks for it."""
    limit = parse_call_number(query["limit"], "limit") if "limit" in query else _USUAL
    if limit > _MOST:
        raise invalid_parameters(f"Limit exceeds max number {_MOST}.")
    offset = parse_call_number(query["offset"], "offset") if "offset" in query else 0
    where, values = _where(query)
    rows = list(store.jobs(f"{where} ORDER BY {_summary_order(query)} LIMIT ? OFFSET ?", (*values, limit, offset)))
    tags = store.tags([row.name for row in rows])
    data = [views.job_summary(row, tags.get(row.name, ())) for row in rows]
    if query.get("withTotalCount") != "true":
        return data
    count = store.connection.execute(f"SELECT count(*) FROM jobs {where}", values).fetchone()[0]
    return {"totalCount": count, "data": data}


def _where(query: Mapping[str, str]) -> tuple[str, list[str]]:
    clauses: list[str] = []
    values: list[str] = []

    def add(clause: str, named: list[str]) -> None:
        clauses.append(clause.format(marks=", ".join("?" * len(named))))
        values.extend(named)

    for key, column in _FILTERS.items():
        if key in query:
            add(f"{column} IN ({{marks}})", query[key].split(","))
    if "tagsContain" in query:
        add(_TAGGED, query["tagsContain"].split(","))
    if "tagsNotContain" in query:
        add(f"NOT {_TAGGED}", query["tagsNotContain"].split(","))
    priorities = query["jobPriority"].split(",") if "jobPriority" in query else []
    if priorities and "default" not in priorities:
        add("priority IN ({marks})", priorities)
    # The conditions for a keyword, and for jobs without a priority. controllers/v2/job.js joins them by OR.
    either: list[str] = []
    words: list[str] = []
    if keyword := query.get("keyword"):
        either += ["instr(user, ?)", "instr(job, ?)", "instr(cluster, ?)"]
        words += [keyword] * 3
    priorities = query.get("jobPriority", "").split(",")
    if "default" in priorities:
        others = [each for each in priorities if each != "default"]
        either += ["priority IS NULL", *["priority = ?"] * len(others)]
        words += others
    if either:
        add(f"({' OR '.join(either)})", words)
    return (f"WHERE {' AND '.join(clauses)}" if clauses else ""), values


def _summary_order(query: Mapping[str, str]) -> str:
    """The order of the list: the newest job first, unless the query names another valid order."""
    key, _, direction = query.get("order", "").partition(",")
    if key not in _ORDERS or direction not in ("ASC", "DESC"):
        return "submitted DESC, sequence DESC"
    nulls = " NULLS LAST" if direction == "ASC" else " NULLS FIRST"
    return f"{_ORDERS[key]} {direction}{nulls}, sequence DESC"


def list_jobs(call: RestCall) -> Reply:
    return Reply(200, list_summaries(call.parts.store, call.query))


def get_job(call: RestCall) -> Reply:
    job = _require_job(call)
    attempts = call.parts.store.attempts(job.name)
    wanted = parse_call_number(call.params["attempt"], "jobAttemptId") if "attempt" in call.params else job.attempt
    attempt = _require_attempt(job, attempts, wanted)
    tasks = call.parts.store.last_attempts(job.name, wanted)
    tags = call.parts.store.tags([job.name]).get(job.name, [])
    return Reply(200, views.job_detail(job, tags, attempt, wanted == job.attempt, tasks))


def get_config(call: RestCall) -> Reply:
    """The job without its secrets, as JSON, which is valid YAML too."""
    job = _require_job(call)
    content = call.parts.store.text(job.name, "config").encode()
    return Reply(200, headers={"content-type": "text/yaml; charset=utf-8"}, content=content)


def set_execution_state(call: RestCall) -> Reply:
    """Stops a job. A request to start it changes nothing, because every job has been started."""
    value = call.text("value")
    if value not in ("START", "STOP"):
        raise invalid_parameters('"value" must be one of [START, STOP]')
    job = _own_job(call, "execute")
    if value == "STOP" and job.completed is None:
        with call.parts.store.transaction():
            call.parts.store.execute_stop(job.name)
        call.parts.controller.stop(job.name)
    return Reply(202, {"status": 202, "message": f"Execute job {job.name} successfully."})


def add_tag(call: RestCall) -> Reply:
    tag = call.text("value")
    _require_tag(tag)
    job = _own_job(call, "add tag to")
    with call.parts.store.transaction():
        call.parts.store.tag(job.name, tag)
    return Reply(200, {"status": 200, "message": f"Add tag {tag} for job {job.name} successfully."})


def delete_tag(call: RestCall) -> Reply:
    tag = call.text("value")
    _require_tag(tag)
    job = _own_job(call, "delete tag from")
    with call.parts.store.transaction():
        was_there = call.parts.store.untag(job.name, tag)
    if not was_there:
        raise no_tag(job.name, tag)
    return Reply(200, {"status": 200, "message": f"Delete tag {tag} from job {job.name} successfully."})


def list_job_events(call: RestCall) -> Reply:
    """The warnings that tasks wait for resources. The local cluster has no other events."""
    job = _require_job(call)
    tasks, lacking = call.parts.controller.waits_for(job.name)
    wanted = call.query.get("type", "Warning")
    rows = [_waiting_event(job, task, lacking) for task in tasks] if lacking and wanted == "Warning" else []
    return Reply(200, {"totalCount": len(rows), "data": rows})


def list_job_attempts(call: RestCall) -> Reply:
    """The latest attempt, then the earlier ones from the first on, as in models/v2/job-attempt.js."""
    job = _require_job(call)
    attempts = call.parts.store.attempts(job.name)
    return Reply(200, [_job_attempt(call, job, attempt) for attempt in (*attempts[-1:], *attempts[:-1])])


def get_job_attempt(call: RestCall) -> Reply:
    job = _require_job(call)
    attempts = call.parts.store.attempts(job.name)
    return Reply(
        200,
        _job_attempt(
            call, job, _require_attempt(job, attempts, parse_call_number(call.params["attempt"], "attemptIndex"))
        ),
    )


def answer_health_check(call: RestCall) -> Reply:
    return Reply(200, headers={"content-type": "text/plain"}, content=b"ok")


def get_task(call: RestCall) -> Reply:
    job, tries = _task_attempts(call)
    if not tries:
        raise no_task(call.job, call.params["role"], call.params["index"])
    return Reply(200, views.task_detail(job, tries))


def get_log_addresses(call: RestCall) -> Reply:
    """The addresses of a task attempt's log files, with a token that is valid for a while and only for these logs."""
    job, tries = _task_attempts(call)
    wanted = parse_call_number(call.params["try"], "taskAttemptId")
    row = next((each for each in tries if each.number == wanted), None)
    if row is None or not row.address:
        raise no_task_log()
    query = {
        "username": job.user, "framework-name": encode_framework_name(job.name), "pod-uid": row.id,
        "taskrole": row.role,
        "token": call.parts.tokens.for_log(row.id),
    }  # fmt: skip
    if call.query.get("tail-mode") == "true":
        query["tail-mode"] = "true"
    place = f"/log-manager/{row.address}:{LOG_MANAGER_PORT}/api/v1/logs"
    names = log_names(attempt_log_folder(call.parts.home, row.id))
    if not names:
        raise no_task_log()
    return Reply(200, {"locations": [{"name": name, "uri": f"{place}/{name}?{urlencode(query)}"} for name in names]})


def _require_job(call: RestCall) -> JobRow:
    if (job := call.parts.store.job(call.job)) is None:
        raise no_job(call.job)
    return job


def _own_job(call: RestCall, what: str) -> JobRow:
    """The job, if the caller may change it."""
    job, person = _require_job(call), call.by.person
    if job.user != person.name and not person.admin:
        raise forbidden_user(f"User {person.name} is not allowed to {what} job {job.name}.")
    return job


def _require_tag(tag: str) -> None:
    """Refuses tags with commas, which separate tags in lists (config/v2/tag.js), and tags that are too long."""
    if "," in tag:
        raise invalid_parameters(f'"value" with value "{tag[:60]}" fails to match the value pattern')
    if len(tag) > _LONGEST_TAG:
        raise invalid_parameters(f'"value" must have at most {_LONGEST_TAG} characters')


def _require_attempt(job: JobRow, attempts: Sequence[JobAttempt], wanted: int) -> JobAttempt:
    attempt = next((each for each in attempts if each.number == wanted), None)
    if attempt is None:
        raise no_attempt(job.name, str(wanted))
    return attempt


def _job_attempt(call: RestCall, job: JobRow, attempt: JobAttempt) -> Json:
    tasks = call.parts.store.last_attempts(job.name, attempt.number)
    return views.job_attempt(job, attempt, attempt.number == job.attempt, tasks)


def _task_attempts(call: RestCall) -> tuple[JobRow, list[TaskRow]]:
    """The job in the path, and all attempts of the task in the path."""
    job = _require_job(call)
    attempt, index = (
        parse_call_number(call.params["attempt"], "jobAttemptId"),
        parse_call_number(call.params["index"], "taskIndex"),
    )
    values = (call.params["role"], index)
    return job, call.parts.store.tasks(job.name, attempt, "AND role = ? AND idx = ?", values)


def _waiting_event(job: JobRow, task: Task, lacking: Sequence[str]) -> Json:
    begun, now = http.format_rfc3339(task.created), http.format_rfc3339(http.current_moment())
    framework, role = encode_framework_name(job.name), task.role.name
    return {
        "uid": f"{task.last.id}.waiting", "frameworkName": framework, "podUid": task.last.id, "taskroleName": role,
        "taskName": f"{framework}-{controller_name(role)}-{task.index}", "taskIndex": task.index, "type": "Warning",
        "reason": "FailedScheduling", "message": views.why_waiting(job, lacking),
        "firstTimestamp": begun, "lastTimestamp": now, "count": 1, "sourceComponent": "default-scheduler",
        "sourceHost": None,
    }  # fmt: skip
