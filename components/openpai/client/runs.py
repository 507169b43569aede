# SPDX-License-Identifier: Apache-2.0
"""Runs on OpenPAI: each is a separate job, whose tasks are its nodes (docs/decisions/0023)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from components.openpai.client import task_logs
from components.openpai.client.cluster_calls import change_resource, job_path, submit_run_job
from components.openpai.client.cluster_errors import is_gone_from_cluster
from components.openpai.client.cluster_jobs import ClusterJobs, jobs_of_nodes
from components.openpai.client.cluster_session import Session, openpai_session_of_caller
from components.openpai.client.job_status import OpenPaiLogMerger, OpenPaiRunReader
from components.openpai.client.jobs import PLATFORM, RELEASED, Job, RunId, inputs_of_job, job_name, run_id
from components.openpai.client.storages import StorageFolder, Storages, parse_storage_folder, storages_folder
from components.openpai.client.task_states import JobDetail
from components.platform.calls import Call, ProviderError
from components.platform.client import LineMerger, RunClients, RunReader, Runs, Where
from components.platform.runs import NodeRun, RunSpec, Try, liked_by
from components.platform.values import Properties

if TYPE_CHECKING:
    from components.platform.status import RunStatus, WantedRuns
    from components.platform.tries import PlannedTry, ReadyTry


def is_openpai_run(run_id: str) -> bool:
    """Whether this is the id of a run on OpenPAI."""
    return run_id.startswith(f"{PLATFORM}/")


def openpai_runs_of_caller(where: Where) -> OpenPaiRuns:
    session = openpai_session_of_caller(where)
    return OpenPaiRuns(session, Storages(storages_folder(where.cloud.home)) if where.cloud is not None else None)


@dataclass
class OpenPaiRuns(ClusterJobs, Runs):
    """`storages`: the cluster's storages, if this machine can read them."""

    storages: Storages | None = None
    unknown_place = (
        "where are the runs? Name a stack, or the cluster's portal with --place, or use --local for the local cloud"
    )

    @property
    def place(self) -> str:
        return self.session.uri

    def place_of(self, run: RunStatus) -> StorageFolder | None:
        return parse_storage_folder(run.folder)

    @property
    def where(self) -> str:
        return f"the cluster {self.session.uri}" + (f" for {self.session.user}" if self.session.user else "")

    def ensure(self, call: Call, spec: RunSpec, started: Sequence[NodeRun]) -> Iterator[NodeRun]:
        user = str(spec.own["cluster"]["user"])
        before = RunId.parse(started[0].id) if started else None
        name = before.job if before else self._submitted(call, spec, user)
        for node in spec.nodes:
            yield NodeRun(node.name, str(run_id(user, name, node.name, node.role)), "ACCEPTED")

    def _submitted(self, call: Call, spec: RunSpec, user: str) -> str:
        """The name of the run's job: one that an interrupted `up` submitted, or a new one."""
        for start in count(1):
            name = job_name(spec.display_name, spec.fingerprint, start)
            before = self.job(call, user, name)
            if before is None:
                call.report.status(f"submitting {name}")
                if submit_run_job(self.session, call, spec, name) or self._is_mine(call, spec, user, name):
                    call.report.info(f"run {spec.display_name}: the job {user}~{name} on {self.session.uri}")
                    return name
            elif not call.anew and self._is_mine(call, spec, user, name):
                call.report.info(f"an interrupted attempt had submitted {name} already; going on from there")
                return name
        raise AssertionError("numbers do not end")

    def _is_mine(self, call: Call, spec: RunSpec, user: str, name: str) -> bool:
        job = self.run_of(call, user, name)
        return job is not None and job.fingerprint == spec.fingerprint and not job.released

    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        for user, name in jobs_of_nodes(nodes):
            self._unless_gone(call, "Stop the job", job_path(user, name, "executionType"), "STOP")

    def release(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        for user, name in jobs_of_nodes(nodes):
            self._unless_gone(call, "Mark the job as history", job_path(user, name, "tag"), RELEASED)

    def relabel(self, call: Call, spec: RunSpec, nodes: Sequence[NodeRun]) -> None:
        """A job's name and text never change, so tags have the run's current name."""
        for user, name in jobs_of_nodes(nodes):
            job = self.run_of(call, user, name)
            if job is None:
                continue
            path, wanted = job_path(user, name, "tag"), job.labels(spec)
            for key, mark in job.changing_marks.items():
                if wanted.get(key) != mark:
                    self._unless_gone(call, "Remove a tag of the job", path, mark, "DELETE")
            for mark in set(wanted.values()) - set(job.marks):
                self._unless_gone(call, "Add a tag to the job", path, mark)

    def _unless_gone(self, call: Call, what: str, path: str, value: str, method: str = "PUT") -> None:
        try:
            change_resource(self.session, call, what, method, path, {"value": value})
        except ProviderError as error:
            if not is_gone_from_cluster(error.__cause__):
                raise

    def reader(self, wanted: WantedRuns) -> RunReader:
        return OpenPaiRunReader(self, wanted, self.storages)

    def merger(self, call: Call, ranks: frozenset[int]) -> LineMerger:
        return OpenPaiLogMerger(self, call, ranks=ranks)

    def prepare_try(self, call: Call, planned: PlannedTry, folder: Path) -> ReadyTry:
        from components.openpai.client.job_tries import prepare_openpai_try

        return prepare_openpai_try(self, call, planned, folder)

    def last_lines(self, call: Call, node: NodeRun, limit: int, patiently: bool = True) -> list[str]:
        run = RunId.parse(node.id)
        content = self.job(call, run.user, run.job) if run else None
        if run is None or content is None:
            raise ProviderError("the cluster no longer has the job")
        place = task_logs.attempts_of(run, JobDetail(content))
        return task_logs.last_task_lines(self.session, call, run, place, limit, patiently) if place else []

    def started(self, call: Call, spec: RunSpec) -> list[NodeRun]:
        living = self.living_jobs(call, str(spec.own["cluster"]["user"]))
        return [node for job in living if job.fingerprint == spec.fingerprint for node in job.unseen_nodes]

    def tries(self, call: Call, inputs: Properties, patiently: bool) -> list[Try]:
        """The tries of the same job of the stack: on a cluster, they have no other resource in common."""
        if not patiently:
            call = replace(call, patience=0.0)
        wanted = _job_key(inputs.get("tags") or {})
        alive = [job for job in self.living_jobs(call, str(inputs["cluster"]["user"])) if _job_key(job.tags) == wanted]
        made = [(job, liked_by(job.fingerprint)) for job in alive]
        tries = [self._try(call, job, like) for job, like in made if like is not None]
        return [one for one in tries if one.nodes]

    def living(self, call: Call, inputs: Properties) -> Mapping[str, str]:
        wanted = _job_key(inputs.get("tags") or {})
        alive = self.living_jobs(call, str(inputs["cluster"]["user"]))
        return {job.fingerprint: job.tags.get("run", "") for job in alive if _job_key(job.tags) == wanted}

    def _try(self, call: Call, job: Job, like: str) -> Try:
        nodes = self.observe(call, job.unseen_nodes)
        return Try(job.title, like, tuple(node for node in nodes if not node.over))

    def describe(self, call: Call, run_id: str) -> tuple[Properties, list[NodeRun]] | None:
        run = RunId.parse(run_id)
        job = self.run_of(call, run.user, run.job) if run else None
        if job is None:
            return None
        nodes = job.unseen_nodes
        return inputs_of_job(job, self.session.uri), self.observe(call, nodes)


def _job_key(tags: Mapping[str, str]) -> tuple[str, str]:
    """The job in the stack file to which a run belongs."""
    return tags.get("stack") or "", tags.get("job") or ""


RUN_CLIENTS = RunClients(is_openpai_run, lambda config: OpenPaiRuns(Session.of(config)), openpai_runs_of_caller)
