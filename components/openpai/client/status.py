# SPDX-License-Identifier: Apache-2.0
"""Runs as a cluster shows them now: jobs of ours, each rank with what its launcher says where that can be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from components.openpai.client.calls import jobs
from components.openpai.client.jobs import Job, RunId, is_job_name, moment_of, start_of, texts
from components.openpai.client.runs import OpenPaiRunPlatform
from components.openpai.client.states import JobDetail
from components.openpai.client.storages import Storages
from components.platform.calls import Call, read_at_once
from components.platform.runs import NodeRun
from components.platform.status import NodeStatus, RunStatus, WantedRuns, run_key
from launcher.escaping import terminal

# Jobs that are asked for at once.
_AT_ONCE = 8


@dataclass
class Looker:
    """Looks again and again; what never changes of a run is asked for once."""

    platform: OpenPaiRunPlatform
    call: Call
    wanted: WantedRuns
    storages: Storages | None = None
    # The text of a job never changes. None: it is no run of ours.
    _texts: dict[str, Job | None] = field(default_factory=dict)
    _ended: dict[str, RunStatus] = field(default_factory=dict)

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        """Every run, the oldest first; `deeply` with what the launchers say, `history` with earlier attempts."""
        runs = [(row, job) for row, job in self._jobs() if self.wanted.includes(job.tags)]
        # The newest first, so the last one of a key is the newest when they are read from the end.
        chosen = runs if history else list({run_key(job.tags): (row, job) for row, job in reversed(runs)}.values())
        seen = read_at_once(lambda pair: self._run(*pair, deeply), chosen, _AT_ONCE)
        return sorted(seen, key=lambda run: (run.created, run.title))

    def _jobs(self) -> Iterator[tuple[Mapping[str, Any], Job]]:
        """The jobs that are runs of ours, the newest first, each with what the list says of it."""
        whose = {"username": self.platform.session.user} if self.platform.session.user else {}
        listed = [
            row
            for row in jobs(self.platform.session, self.call, "List the jobs", **whose)
            if is_job_name(str(row.get("name")))
        ]
        missing = [row for row in listed if _name(row) not in self._texts]
        read = read_at_once(self._text, missing, _AT_ONCE)
        self._texts |= {_name(row): job for row, job in zip(missing, read, strict=True)}
        for row in listed:
            job = self._texts[_name(row)]
            if job is not None:
                yield row, replace(job, marks=texts(row.get("tags")))

    def _text(self, row: Mapping[str, Any]) -> Job | None:
        return self.platform.run_of(self.call, str(row.get("username")), str(row.get("name")), row.get("tags") or [])

    def _run(self, row: Mapping[str, Any], job: Job, deeply: bool) -> RunStatus:
        main = job.run_id(job.nodes[0])
        if main in self._ended:
            return self._named(self._ended[main], job)
        detail = JobDetail(self.platform.job(self.call, job.user, job.name) or {}, job.maximum_minutes)
        runs = [NodeRun(str(node["name"]), job.run_id(node), "") for node in job.nodes]
        seen = self.platform.nodes_of(self.call, job.user, job.name, detail, runs)
        folder = f"{job.folder}/{start_of(job.name, detail.attempt)}" if job.folder else None
        nodes = [_node(node, run, detail) for node, run in zip(job.nodes, seen, strict=True)]
        if deeply and self.storages is not None:
            nodes = [replace(node, launcher_status=self.storages.status(job, folder, node.rank)) for node in nodes]
        created = moment_of(row.get("submissionTime")) or moment_of(detail.status.get("createdTime"))
        made = RunStatus(
            stack="",
            job="",
            name="",
            attempt=job.attempt,
            created=datetime.fromisoformat(created) if created else datetime.fromtimestamp(0, UTC),
            nodes=tuple(sorted(nodes, key=lambda node: (node.rank, node.run.name))),
            folder=folder,
        )
        if deeply and made.over:
            self._ended[main] = made
        return self._named(made, job)

    def _named(self, run: RunStatus, job: Job) -> RunStatus:
        """A run that has ended may still be renamed."""
        tags = {key: terminal(value) for key, value in job.tags.items()}
        return replace(run, stack=tags.get("stack", ""), job=tags.get("job", ""), name=tags.get("run", ""))


def _name(row: Mapping[str, Any]) -> str:
    return f"{row.get('username')}~{row.get('name')}"


def _node(node: Mapping[str, Any], run: NodeRun, detail: JobDetail) -> NodeStatus:
    rank, parsed = node.get("rank"), RunId.parse(run.id)
    has_log = parsed is not None and parsed.task_key in detail.tasks
    return NodeStatus(rank if type(rank) is int else 0, run, str(node.get("role") or ""), run.id if has_log else None)
