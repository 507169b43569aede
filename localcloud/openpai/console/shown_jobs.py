# SPDX-License-Identifier: Apache-2.0
"""Shows jobs of the cluster as training runs: our own jobs with their nodes, others with their tasks."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.openpai.client import task_states
from components.openpai.client.jobs import Job, RunId, run_id, start_of_job
from components.openpai.client.task_states import JobDetail
from components.platform.runs import NodeRun
from launcher.escaping import terminal_line
from localcloud.console.platform import LONGEST_NAME, MOST_RANKS, MOST_RUNS, RunNode, TrainingRun
from localcloud.openpai import views
from localcloud.openpai.job_store import JobRow
from localcloud.openpai.rest import Parts

_KEPT_SECONDS = 1.0
_LONGEST_TITLE, _MOST_VARIABLES = 200, 500
_EXPORTED = re.compile(r"\bexport ([A-Za-z_][A-Za-z0-9_]{0,99})\b")


@dataclass(frozen=True, slots=True)
class OpenPaiRun(TrainingRun):
    """A run. `job`: its row. `logs`: by rank, the task attempt with the rank's log. `place`: the storage and the folder
    there with its launchers' files."""

    job: JobRow
    logs: Mapping[int, str]
    place: tuple[str, str] | None


@dataclass
class RunBook:
    """The runs of one cluster. Ended jobs are read again only when their tags change."""

    parts: Parts
    _seen: dict[str, tuple[JobRow, tuple[str, ...], OpenPaiRun]] = field(default_factory=dict)
    _latest: list[OpenPaiRun] = field(default_factory=list)
    _changes: int = -1
    _read_at: float = 0.0

    def latest(self) -> list[OpenPaiRun]:
        """The newest runs, the newest first. Read again after a while, because waiting jobs change with time."""
        changes = self.parts.store.connection.total_changes
        if changes != self._changes or time.monotonic() > self._read_at + _KEPT_SECONDS:
            self._latest = list(self._read())
            self._changes, self._read_at = changes, time.monotonic()
        return self._latest

    def _read(self) -> Iterator[OpenPaiRun]:
        rows = list(self.parts.store.jobs("ORDER BY sequence DESC LIMIT ?", (MOST_RUNS,)))
        tags = self.parts.store.tags([row.name for row in rows])
        before, self._seen = self._seen, {}
        for row in rows:
            marks = tuple(tags.get(row.name, ()))
            seen = before.get(row.name)
            if seen is None or row.completed is None or seen[:2] != (row, marks):
                seen = (row, marks, _shown_job(self.parts, row, marks))
            self._seen[row.name] = seen
            yield seen[2]


def _shown_job(parts: Parts, row: JobRow, marks: tuple[str, ...]) -> OpenPaiRun:
    text = parts.store.text(row.name, "config")
    job = Job.read(row.user, row.job, text, list(marks))
    rows = job.nodes if job else _tasks_of_others(text)
    tries = parts.store.last_attempts(row.name, row.attempt)
    attempts = parts.store.attempts(row.name)
    detail = JobDetail(views.job_detail(row, list(marks), attempts[-1] if attempts else None, True, tries))
    tasks, lacking = parts.controller.waits_for(row.name)
    waits = views.why_waiting(row, lacking) if tasks and lacking else ""
    log_of = {(one.role, one.index): one.id for one in tries if one.address}
    nodes, logs = [], {}
    for rank, node in enumerate(rows[:MOST_RANKS]):
        rank = node["rank"] if type(node.get("rank")) is int else rank
        name, role = str(node["name"]), str(node["role"])
        run = run_id(row.user, row.job, name, role)
        logs[rank] = log_of.get(run.task_key, "")
        seen = task_states.task_node_run(NodeRun(name[:LONGEST_NAME], str(run), ""), detail, waits)
        nodes.append(RunNode(rank, role[:LONGEST_NAME], seen, machine=str(run)))
    folder = f"{job.folder}/{start_of_job(job.name, detail.attempt)}" if job and job.folder else None
    title = terminal_line(job.title) if job else row.job
    return OpenPaiRun(
        key=nodes[0].run.id if nodes else str(RunId(row.user, row.job, "", 0)),
        stack=terminal_line(job.tags.get("stack", ""))[:_LONGEST_TITLE] if job else "",
        title=title[:_LONGEST_TITLE],
        attempt=job.attempt if job and job.attempt < 10**6 else None,
        created=row.submitted,
        nodes=tuple(sorted(nodes, key=lambda one: (one.rank, one.run.name))),
        variables=tuple(sorted(set(_EXPORTED.findall(text)))[:_MOST_VARIABLES]),
        job=row,
        logs=logs,
        place=job.storage_place(folder) if job else None,
    )


def _tasks_of_others(text: str) -> list[dict[str, Any]]:
    """The tasks of a job that is not ours, role by role."""
    try:
        roles = json.loads(text)["taskRoles"].items()
        counts = [(name, int(role.get("instances") or 1)) for name, role in roles]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    return [
        {"name": f"{name}-{index}", "role": name} for name, count in counts for index in range(min(count, MOST_RANKS))
    ]
