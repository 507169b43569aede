# SPDX-License-Identifier: Apache-2.0
"""The jobs of a cluster that are our runs, as its REST server describes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from components.openpai.client import task_states
from components.openpai.client.cluster_calls import (
    ask_cluster_if_exists,
    attempt_on_cluster,
    if_exists,
    job_path,
    list_cluster_jobs,
)
from components.openpai.client.cluster_session import Session
from components.openpai.client.jobs import Job, RunId, is_job_name
from components.openpai.client.task_states import JobDetail
from components.platform.calls import Call, ProviderError
from components.platform.runs import NodeRun
from launcher.escaping import terminal_line

# The states of a job that has not ended.
ALIVE = "WAITING,RUNNING,STOPPING"


@dataclass
class ClusterJobs:
    session: Session
    # Not every release of OpenPAI has events.
    _has_events: bool = field(default=True, init=False)

    def job(self, call: Call, user: str, name: str) -> Mapping[str, Any] | None:
        """The cluster's response about a job. None if no job has this name."""
        detail = ask_cluster_if_exists(self.session, call, "Read the job", job_path(user, name))
        return detail if isinstance(detail, Mapping) else None

    def run_of(self, call: Call, user: str, name: str, marks: Any = None) -> Job | None:
        """The run of a job. None if the job is not one of ours, or does not exist. `marks`: its tags, if they are
        known."""
        if marks is None:
            detail = self.job(call, user, name)
            if detail is None:
                return None
            marks = detail.get("tags")
        address = self.session.address(job_path(user, name, "config"))

        def read() -> str:
            return self.session.send("GET", address).body.decode("utf-8", "replace")

        config = if_exists(lambda: attempt_on_cluster(call, "Read the job's text", read))
        return Job.read(user, name, config, marks) if config is not None else None

    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        seen = {node.id: task_states.deleted_job_node(node) for node in nodes}
        for user, name in jobs_of_nodes(nodes):
            detail = JobDetail(self.job(call, user, name) or {})
            mine = [node for node in nodes if (RunId.parse(node.id) or ())[:2] == (user, name)]
            seen |= {node.id: node for node in self.nodes_of(call, user, name, detail, mine)}
        return [seen[node.id] for node in nodes]

    def nodes_of(self, call: Call, user: str, name: str, detail: JobDetail, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        """The nodes of a job that was already read. A removed job has an empty detail."""
        if not detail.content:
            return [task_states.deleted_job_node(node) for node in nodes]
        if detail.failed and detail.maximum_minutes is None:
            job = self.run_of(call, user, name, detail.content.get("tags") or [])
            detail = replace(detail, maximum_minutes=job.maximum_minutes if job else None)
        waits = self._waits(call, user, name) if detail.state == "WAITING" else ""
        return [task_states.task_node_run(node, detail, waits) for node in nodes]

    def _waits(self, call: Call, user: str, name: str) -> str:
        """The reason why the scheduler has not placed the job yet, or "" if the cluster does not give one."""
        if not self._has_events:
            return ""
        path = job_path(user, name, "events")
        try:
            answer = ask_cluster_if_exists(
                self.session, replace(call, patience=0.0), "Read why the job waits", path, type="Warning"
            )
        except ProviderError:
            self._has_events = False
            return ""
        rows = answer.get("data") if isinstance(answer, Mapping) else None
        messages = (row.get("message") for row in rows or () if isinstance(row, Mapping))
        return next((terminal_line(text) for text in messages if isinstance(text, str) and text), "")

    def living_jobs(self, call: Call, user: str) -> Iterator[Job]:
        """The runs of a user that have not ended."""
        return (job for job in self.runs_of(call, user, state=ALIVE) if not job.released)

    def runs_of(self, call: Call, user: str, **query: str) -> Iterator[Job]:
        """The runs of a user, the newest first. Without a user: of everybody."""
        runs = (self.listed_run(call, row) for row in self.listed(call, user, **query))
        return (run for run in runs if run is not None)

    def listed(self, call: Call, user: str, **query: str) -> Iterator[Mapping[str, Any]]:
        """Rows of the list of jobs that may be our runs."""
        whose = {"username": user} if user else {}
        rows = list_cluster_jobs(self.session, call, "List the jobs", **whose, **query)
        return (row for row in rows if is_job_name(str(row.get("name"))))

    def listed_run(self, call: Call, row: Mapping[str, Any]) -> Job | None:
        return self.run_of(call, str(row.get("username")), str(row.get("name")), row.get("tags") or [])


def jobs_of_nodes(nodes: Sequence[NodeRun]) -> dict[tuple[str, str], None]:
    """The user and the name of each job that has some of these nodes."""
    runs = (RunId.parse(node.id) for node in nodes)
    return dict.fromkeys((run.user, run.job) for run in runs if run is not None)
