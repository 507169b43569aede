# SPDX-License-Identifier: Apache-2.0
"""The current runs of a cluster: our jobs, and the launcher's status of each rank, if it can be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from components.openpai.client import task_logs
from components.openpai.client.cluster_jobs import ClusterJobs
from components.openpai.client.jobs import Job, RunId, moment_of, start_of_job, texts_in_list
from components.openpai.client.storages import Storages
from components.openpai.client.task_logs import LogPlace
from components.openpai.client.task_states import JobDetail
from components.platform.calls import Call, read_at_once
from components.platform.client import RunReader
from components.platform.log_lines import LogMerger, name_of_node, split_prefix
from components.platform.status import NodeStatus, RunStatus, WantedRuns, run_key
from launcher.escaping import terminal_line
from launcher.redraws import whole_lines

# The number of jobs that are read in parallel.
JOBS_AT_ONCE = 8


@dataclass
class OpenPaiLogMerger(LogMerger):
    jobs: ClusterJobs
    call: Call
    _places: dict[str, LogPlace] = field(default_factory=dict)
    # By the name of a node: its incomplete last line.
    _ends: dict[str, str] = field(default_factory=dict)

    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        for run in runs:
            nodes = [node for node in run.nodes if node.log is not None and (not self.ranks or node.rank in self.ranks)]
            main = RunId.parse(nodes[0].run.id) if nodes else None
            content = self.jobs.job(self.call, main.user, main.job) if main else None
            if content is not None:
                detail = JobDetail(content)
                for node in nodes:
                    yield from self._of(node, detail)

    def unfinished(self) -> Iterator[str]:
        yield from super().unfinished()
        for name, end in self._ends.items():
            prefix, own = split_prefix(name, end)
            yield from (f"{prefix}{text}" for text in whole_lines([own]))

    def _of(self, node: NodeStatus, detail: JobDetail) -> Iterator[str]:
        run = RunId.parse(node.run.id)
        if run is None:
            return
        begin, read = task_logs.attempts_of(run, detail), self._places.get(node.run.id)
        if read is not None and begin is not None and begin.attempts != read.attempts:
            # The last lines of the previous attempt, whose log stays when the task is retried.
            yield from self._lines(node, run, read)
            yield from self._end(node)
        place = read if read is not None and begin is not None and begin.attempts == read.attempts else begin
        if place is not None:
            yield from self._lines(node, run, place)

    def _lines(self, node: NodeStatus, run: RunId, place: LogPlace) -> Iterator[str]:
        lines, rest, self._places[node.run.id] = task_logs.text_after(self.jobs.session, self.call, run, place)
        name = name_of_node(node)
        self._ends.pop(name, None)
        for line in lines:
            yield from self.add(name, line)
        if rest:
            self._ends[name] = rest

    def _end(self, node: NodeStatus) -> Iterator[str]:
        """The last line of an attempt that has ended."""
        name = name_of_node(node)
        if end := self._ends.pop(name, ""):
            yield from self.add(name, end)


@dataclass
class OpenPaiRunReader(RunReader):
    """`storages`: with the launchers' status, if this machine can read them."""

    jobs: ClusterJobs
    wanted: WantedRuns
    storages: Storages | None = None
    # The text of a job never changes, so it is cached. None: not one of our runs.
    _texts: dict[str, Job | None] = field(default_factory=dict)
    _ended: dict[str, RunStatus] = field(default_factory=dict)

    def look(self, call: Call, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        runs = [(row, job) for row, job in self._jobs(call) if self.wanted.includes(job.tags)]
        # The list is reversed, so that the newest job of a key remains.
        chosen = runs if history else list({run_key(job.tags): (row, job) for row, job in reversed(runs)}.values())
        seen = read_at_once(lambda pair: self._run(call, *pair, deeply), chosen, JOBS_AT_ONCE)
        return sorted(seen, key=lambda run: (run.created, run.title))

    def _jobs(self, call: Call) -> Iterator[tuple[Mapping[str, Any], Job]]:
        """The jobs that are our runs, the newest first, each with its row of the list."""
        listed = list(self.jobs.listed(call, self.jobs.session.user))
        missing = [row for row in listed if _row_name(row) not in self._texts]
        read = read_at_once(partial(self.jobs.listed_run, call), missing, JOBS_AT_ONCE)
        self._texts |= {_row_name(row): job for row, job in zip(missing, read, strict=True)}
        for row in listed:
            job = self._texts[_row_name(row)]
            if job is not None:
                yield row, replace(job, marks=texts_in_list(row.get("tags")))

    def _run(self, call: Call, row: Mapping[str, Any], job: Job, deeply: bool) -> RunStatus:
        main = job.run_id(job.nodes[0])
        if main in self._ended:
            return self._named(self._ended[main], job)
        detail = JobDetail(self.jobs.job(call, job.user, job.name) or {}, job.maximum_minutes)
        runs = job.unseen_nodes
        seen = self.jobs.nodes_of(call, job.user, job.name, detail, runs)
        folder = f"{job.folder}/{start_of_job(job.name, detail.attempt)}" if job.folder else None
        nodes = []
        for node, node_run in zip(job.nodes, seen, strict=True):
            rank, run_id = node.get("rank"), RunId.parse(node_run.id)
            log = node_run.id if run_id is not None and run_id.task_key in detail.tasks else None
            nodes.append(NodeStatus(rank if type(rank) is int else 0, node_run, str(node.get("role") or ""), log))
        if deeply and (storages := self.storages) is not None:
            nodes = [replace(node, launcher_status=storages.status(job, folder, node.rank)) for node in nodes]
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
        """The current names. A run that has ended may still be renamed."""
        tags = {key: terminal_line(value) for key, value in job.tags.items()}
        return replace(run, stack=tags.get("stack", ""), job=tags.get("job", ""), name=tags.get("run", ""))


def _row_name(row: Mapping[str, Any]) -> str:
    return f"{row.get('username')}~{row.get('name')}"
