# SPDX-License-Identifier: Apache-2.0
"""Calls about jobs that are there: lists, details, configuration, stop, tags, events, tasks, and where logs are."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from components.openpai.protocol import controller_name
from localcloud.api import clock
from localcloud.api.http import Json, Reply
from localcloud.openpai import views
from localcloud.openpai.attempts import log_folder
from localcloud.openpai.environment import encoded_name
from localcloud.openpai.errors import forbidden, invalid_parameters, no_attempt, no_job, no_tag, no_task, no_task_log
from localcloud.openpai.framework import JobTry, Task
from localcloud.openpai.listing import listed
from localcloud.openpai.logs import LOG_MANAGER_PORT, log_names
from localcloud.openpai.rest import RestCall, number
from localcloud.openpai.store import JobRow, TaskRow

_LONGEST_TAG = 512


def list_jobs(call: RestCall) -> Reply:
    return Reply(200, listed(call.parts.store, call.query))


def get_job(call: RestCall) -> Reply:
    job = _job(call)
    attempts = call.parts.store.attempts(job.name)
    wanted = number(call.params["attempt"], "jobAttemptId") if "attempt" in call.params else job.attempt
    attempt = _attempt(job, attempts, wanted)
    tasks = call.parts.store.last_tries(job.name, wanted)
    return Reply(200, views.detail(job, _tags(call, job), attempt, wanted == job.attempt, tasks))


def get_config(call: RestCall) -> Reply:
    """The job without its secrets, in JSON, which is YAML, too."""
    job = _job(call)
    content = call.parts.store.text(job.name, "config").encode()
    return Reply(200, headers={"content-type": "text/yaml; charset=utf-8"}, content=content)


def execute(call: RestCall) -> Reply:
    """Stops a job. One that was started before is started."""
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


def events(call: RestCall) -> Reply:
    """What a job waits for. Nothing else here is an event."""
    job = _job(call)
    tasks, lacking = call.parts.controller.waits_for(job.name)
    wanted = call.query.get("type", "Warning")
    rows = [_waiting(job, task, lacking) for task in tasks] if lacking and wanted == "Warning" else []
    return Reply(200, {"totalCount": len(rows), "data": rows})


def job_attempts(call: RestCall) -> Reply:
    """The latest attempt, then those before it, the first one first: models/v2/job-attempt.js."""
    job = _job(call)
    attempts = call.parts.store.attempts(job.name)
    return Reply(200, [_job_attempt(call, job, attempt) for attempt in (*attempts[-1:], *attempts[:-1])])


def get_job_attempt(call: RestCall) -> Reply:
    job = _job(call)
    attempts = call.parts.store.attempts(job.name)
    return Reply(200, _job_attempt(call, job, _attempt(job, attempts, number(call.params["attempt"], "attemptIndex"))))


def healthy(call: RestCall) -> Reply:
    return Reply(200, headers={"content-type": "text/plain"}, content=b"ok")


def get_task(call: RestCall) -> Reply:
    job, tries = _tries(call)
    if not tries:
        raise no_task(call.job, call.params["role"], call.params["index"])
    return Reply(200, views.task_detail(job, tries))


def get_logs(call: RestCall) -> Reply:
    """Where the log files of a task's attempt are: below the log manager, for a while, and for nobody else's logs."""
    job, tries = _tries(call)
    wanted = number(call.params["try"], "taskAttemptId")
    row = next((each for each in tries if each.number == wanted), None)
    if row is None or not row.address:
        raise no_task_log()
    query = {
        "username": job.user, "framework-name": encoded_name(job.name), "pod-uid": row.id, "taskrole": row.role,
        "token": call.parts.tokens.for_log(row.id),
    }  # fmt: skip
    if call.query.get("tail-mode") == "true":
        query["tail-mode"] = "true"
    place = f"/log-manager/{row.address}:{LOG_MANAGER_PORT}/api/v1/logs"
    names = log_names(log_folder(call.parts.home, row.id))
    if not names:
        raise no_task_log()
    return Reply(200, {"locations": [{"name": name, "uri": f"{place}/{name}?{urlencode(query)}"} for name in names]})


def _job(call: RestCall) -> JobRow:
    if (job := call.parts.store.job(call.job)) is None:
        raise no_job(call.job)
    return job


def _own_job(call: RestCall, what: str) -> JobRow:
    """The job, if the caller may change it."""
    job, person = _job(call), call.by.person
    if job.user != person.name and not person.admin:
        raise forbidden(f"User {person.name} is not allowed to {what} job {job.name}.")
    return job


def _require_tag(tag: str) -> None:
    """config/v2/tag.js: lists of tags are separated by commas. Its tables hold no longer one."""
    if "," in tag:
        raise invalid_parameters(f'"value" with value "{tag[:60]}" fails to match the value pattern')
    if len(tag) > _LONGEST_TAG:
        raise invalid_parameters(f'"value" must have at most {_LONGEST_TAG} characters')


def _tags(call: RestCall, job: JobRow) -> list[str]:
    return call.parts.store.tags([job.name]).get(job.name, [])


def _attempt(job: JobRow, attempts: Sequence[JobTry], wanted: int) -> JobTry:
    attempt = next((each for each in attempts if each.number == wanted), None)
    if attempt is None:
        raise no_attempt(job.name, str(wanted))
    return attempt


def _job_attempt(call: RestCall, job: JobRow, attempt: JobTry) -> Json:
    tasks = call.parts.store.last_tries(job.name, attempt.number)
    return views.job_attempt(job, attempt, attempt.number == job.attempt, tasks)


def _tries(call: RestCall) -> tuple[JobRow, list[TaskRow]]:
    """The job that the path names, and all attempts of the task that it names."""
    job = _job(call)
    attempt, index = number(call.params["attempt"], "jobAttemptId"), number(call.params["index"], "taskIndex")
    values = (call.params["role"], index)
    return job, call.parts.store.tasks(job.name, attempt, "AND role = ? AND idx = ?", values)


def _waiting(job: JobRow, task: Task, lacking: Sequence[str]) -> Json:
    begun, now = clock.rfc3339(task.created), clock.rfc3339(clock.now())
    framework, role = encoded_name(job.name), task.role.name
    return {
        "uid": f"{task.last.id}.waiting", "frameworkName": framework, "podUid": task.last.id, "taskroleName": role,
        "taskName": f"{framework}-{controller_name(role)}-{task.index}", "taskIndex": task.index, "type": "Warning",
        "reason": "FailedScheduling", "message": views.why_waiting(job, lacking),
        "firstTimestamp": begun, "lastTimestamp": now, "count": 1, "sourceComponent": "default-scheduler",
        "sourceHost": None,
    }  # fmt: skip
