# SPDX-License-Identifier: Apache-2.0
"""The database of the local OpenPAI. Changes are on disk before a call is answered. Only the event loop uses it.

Jobs, attempts of jobs, and attempts of tasks have a row each. So an event only writes the rows that it changes, however
large the job is.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localcloud.files import sqlite_transaction
from localcloud.openpai.framework import AttemptEnd, Framework, JobAttempt, Task, TaskAttemptState
from localcloud.openpai.policies import RolePolicy, build_job_policy

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, user TEXT NOT NULL, job TEXT NOT NULL,
    uid TEXT NOT NULL, cluster TEXT NOT NULL, submitted REAL NOT NULL, execution TEXT NOT NULL, state TEXT NOT NULL,
    sub_state TEXT NOT NULL, attempt INTEGER NOT NULL, counted INTEGER NOT NULL, launched REAL, completed REAL,
    code INTEGER, tasks INTEGER NOT NULL, roles INTEGER NOT NULL, gpus INTEGER NOT NULL, config TEXT NOT NULL,
    protocol TEXT NOT NULL, priority TEXT);
CREATE INDEX IF NOT EXISTS by_completed ON jobs (completed);
CREATE TABLE IF NOT EXISTS job_attempts (
    job TEXT NOT NULL, number INTEGER NOT NULL, uid TEXT NOT NULL, started REAL NOT NULL, launched REAL, ended REAL,
    code INTEGER, details TEXT NOT NULL, trigger TEXT NOT NULL, role TEXT NOT NULL, idx INTEGER,
    PRIMARY KEY (job, number)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS task_attempts (
    id TEXT NOT NULL PRIMARY KEY, job TEXT NOT NULL, job_attempt INTEGER NOT NULL, role TEXT NOT NULL,
    idx INTEGER NOT NULL, number INTEGER NOT NULL, task_uid TEXT NOT NULL, task_created REAL NOT NULL,
    counted INTEGER NOT NULL, state TEXT NOT NULL, created REAL NOT NULL, launched REAL, ended REAL, code INTEGER,
    details TEXT NOT NULL, address TEXT NOT NULL, ports TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_job ON task_attempts (job, job_attempt, role, idx, number);
CREATE TABLE IF NOT EXISTS tags (job TEXT NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (job, tag)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (token TEXT NOT NULL PRIMARY KEY, user TEXT NOT NULL) WITHOUT ROWID;
"""
_JOB = (
    "name, user, job, uid, cluster, submitted, execution, state, sub_state, attempt, counted, launched, completed,"
    " code, tasks, roles, gpus, priority"
)
_LONGEST_DETAILS = 16_384
# The number of jobs that are kept. A real cluster also removes old jobs. Here they are removed in batches of this size,
# so that no client has to wait.
JOBS_KEPT, _REMOVED_AT_ONCE = 10_000, 200
_TABLES_OF_JOBS = ("job_attempts", "task_attempts", "tags")


@dataclass(frozen=True)
class JobRow:
    """A job's row, without its texts."""

    name: str
    user: str
    job: str
    uid: str
    cluster: str
    submitted: float
    execution: str = "START"
    state: str = "WAITING"
    sub_state: str = "AttemptCreationPending"
    attempt: int = 0
    counted: int = 0
    launched: float | None = None
    completed: float | None = None
    code: int | None = None
    tasks: int = 0
    roles: int = 0
    gpus: int = 0
    priority: str | None = None


@dataclass(frozen=True)
class TaskRow:
    """An attempt of a task, with the values of the task at that time."""

    id: str
    job_attempt: int
    role: str
    index: int
    number: int
    task_uid: str
    task_created: float
    counted: int
    state: str
    created: float
    launched: float | None
    ended: float | None
    code: int | None
    details: str
    address: str
    ports: Mapping[str, tuple[int, ...]]


class JobStore:
    """The tables of one local OpenPAI."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        # secure_delete, because removed values may be secrets.
        settings = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON;"
        self.connection.executescript(f"{settings} {_SCHEMA}")
        columns = {row[1] for row in self.connection.execute("PRAGMA table_info(jobs)")}
        if "priority" not in columns:  # a cloud of an earlier release
            self.connection.execute("ALTER TABLE jobs ADD COLUMN priority TEXT")
        # That release could leave secrets unmasked, if the job's text did not have them in a line `secrets:`.
        self.connection.execute(
            "UPDATE jobs SET config = json_set(config, '$.secrets', '******')"
            " WHERE json_valid(config) AND json_type(config, '$.secrets') = 'object'"
        )

    def close(self) -> None:
        self.connection.close()

    def transaction(self) -> AbstractContextManager[None]:
        return sqlite_transaction(self.connection)

    def add(self, row: JobRow, config: str, protocol: Mapping[str, Any]) -> None:
        """Adds a job. `config`: its text for clients, without secrets. `protocol` keeps secrets until the job ends."""
        values = [*vars(row).values(), config, json.dumps(protocol)]
        marks = ", ".join("?" * len(values))
        self.connection.execute(f"INSERT INTO jobs ({_JOB}, config, protocol) VALUES ({marks})", values)

    def job(self, name: str) -> JobRow | None:
        return next(self.jobs("WHERE name = ?", (name,)), None)

    def jobs(self, where: str, values: Sequence[object]) -> Iterator[JobRow]:
        return (JobRow(*row) for row in self.connection.execute(f"SELECT {_JOB} FROM jobs {where}", values))

    def text(self, name: str, column: str) -> str:
        row = self.connection.execute(f"SELECT {column} FROM jobs WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def execute_stop(self, name: str) -> None:
        self.connection.execute("UPDATE jobs SET execution = 'STOP' WHERE name = ?", (name,))

    def attempts(self, name: str) -> list[JobAttempt]:
        """The attempts of a job, the first one first."""
        rows = self.connection.execute(
            "SELECT number, started, uid, launched, ended, code, details, trigger, role, idx FROM job_attempts"
            " WHERE job = ? ORDER BY number", (name,),
        )  # fmt: skip
        return [
            JobAttempt(number, started, uid, launched, ended, None if code is None else AttemptEnd(code, *how))
            for number, started, uid, launched, ended, code, *how in rows
        ]

    def tasks(self, name: str, attempt: int, where: str = "", values: Sequence[object] = ()) -> list[TaskRow]:
        """The task attempts of one attempt of a job, ordered by role, index and number."""
        rows = self.connection.execute(
            "SELECT id, job_attempt, role, idx, number, task_uid, task_created, counted, state, created, launched,"
            f" ended, code, details, address, ports FROM task_attempts WHERE job = ? AND job_attempt = ? {where}"
            " ORDER BY role, idx, number", (name, attempt, *values),
        )  # fmt: skip
        return [
            replace(TaskRow(*row), ports={label: tuple(numbers) for label, numbers in json.loads(row[-1]).items()})
            for row in rows
        ]

    def last_attempts(self, name: str, attempt: int) -> list[TaskRow]:
        """The last attempt of each task in an attempt of a job."""
        last = {(row.role, row.index): row for row in self.tasks(name, attempt)}
        return list(last.values())

    def tags(self, names: Sequence[str]) -> dict[str, list[str]]:
        """The tags of these jobs, in alphabetical order."""
        tags: dict[str, list[str]] = {}
        for at in range(0, len(names), 500):
            part = names[at : at + 500]
            marks = ", ".join("?" * len(part))
            for job, tag in self.connection.execute(f"SELECT job, tag FROM tags WHERE job IN ({marks})", part):
                tags.setdefault(job, []).append(tag)
        return tags

    def tag(self, name: str, tag: str) -> None:
        self.connection.execute("INSERT OR IGNORE INTO tags VALUES (?, ?)", (name, tag))

    def untag(self, name: str, tag: str) -> bool:
        return bool(self.connection.execute("DELETE FROM tags WHERE job = ? AND tag = ?", (name, tag)).rowcount)

    def write(self, framework: Framework, state: str) -> None:
        """Saves the changes of a job."""
        name, attempt = framework.name, framework.attempt
        attempts = []
        for job_attempt in (*framework.ended_attempts, attempt):
            end = job_attempt.end
            attempts.append((
                name, job_attempt.number, job_attempt.uid, job_attempt.started, job_attempt.launched, job_attempt.ended,
                *((end.code, end.details, end.trigger, end.role, end.index) if end else (None, "", "", "", None)),
            ))  # fmt: skip
        self.connection.executemany(
            "INSERT OR REPLACE INTO job_attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", attempts
        )
        self.connection.executemany(
            "INSERT OR REPLACE INTO task_attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    one.id, name, one.job_attempt, task.role.key, task.index, one.number, task.uid, task.created,
                    task.counted, one.state, one.created, one.launched, one.ended, one.code,
                    one.details[:_LONGEST_DETAILS], one.address, json.dumps(one.ports),
                )
                for task, one in framework.changed.values()
            ],
        )  # fmt: skip
        framework.changed.clear()
        framework.ended_attempts.clear()
        self.connection.execute(
            "UPDATE jobs SET state = ?, sub_state = ?, attempt = ?, counted = ?, launched = coalesce(launched, ?),"
            " completed = ?, code = ? WHERE name = ?",
            (state, framework.state, attempt.number, framework.counted, attempt.launched,
             attempt.ended if framework.over else None, attempt.end.code if attempt.end else None, name),
        )  # fmt: skip
        if framework.over:  # the secrets are not needed any more
            self.connection.execute("UPDATE jobs SET protocol = '{}' WHERE name = ?", (name,))

    def prune(self, kept: int = JOBS_KEPT) -> list[str]:
        """Removes the oldest ended jobs, if there are too many. Returns the task attempts whose logs may be removed."""
        with self.transaction():
            rows = self.connection.execute(
                "SELECT name FROM jobs WHERE completed IS NOT NULL AND sequence <"
                " (SELECT sequence FROM jobs ORDER BY sequence DESC LIMIT 1 OFFSET ?) ORDER BY sequence LIMIT ?",
                (kept - 1, _REMOVED_AT_ONCE),
            )
            names = [name for (name,) in rows]
            marks = ", ".join("?" * len(names))
            chosen = self.connection.execute(f"SELECT id FROM task_attempts WHERE job IN ({marks})", names)
            attempts = [attempt for (attempt,) in chosen]
            for table in _TABLES_OF_JOBS:
                self.connection.execute(f"DELETE FROM {table} WHERE job IN ({marks})", names)
            self.connection.execute(f"DELETE FROM jobs WHERE name IN ({marks})", names)
        return attempts

    def attempt_ids(self) -> set[str]:
        """The ids of all task attempts."""
        return {attempt for (attempt,) in self.connection.execute("SELECT id FROM task_attempts")}

    def living(self) -> Iterator[Framework]:
        """The jobs that have not ended, as they were saved, the oldest first."""
        rows = list(self.jobs("WHERE completed IS NULL ORDER BY sequence", ()))
        return (self.load(row) for row in rows)

    def load(self, row: JobRow) -> Framework:
        framework = Framework(row.name, row.uid, build_job_policy(json.loads(self.text(row.name, "protocol"))))
        framework.counted, framework.stopping = row.counted, row.execution == "STOP"
        if attempts := self.attempts(row.name):
            framework.attempt = attempts[-1]
            roles = {role.key: role for role in framework.policy.roles}
            last = {(each.role, each.index): each for each in self.tasks(row.name, attempts[-1].number)}
            framework.take([_read_task(each, roles[each.role]) for each in last.values()])
        return framework


def _read_task(row: TaskRow, role: RolePolicy) -> Task:
    last = TaskAttemptState(
        row.number, row.job_attempt, row.created, row.id, row.state, row.launched, row.ended, row.code, row.details,
        row.address, row.ports,
    )  # fmt: skip
    return Task(role, row.index, row.task_created, last, row.task_uid, row.counted, row.created)
