# SPDX-License-Identifier: Apache-2.0
"""OpenPAI for stacks on the local cloud: stand-ins for storages that a file names, the user who calls the cluster, and
live runs that end when a stack is removed. Storages belong to the cluster, and are not removed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from components.openpai.client.cluster_session import Session
from components.openpai.client.jobs import PLATFORM, Job, RunId, moment_of, start_of_job
from components.openpai.client.runs import OpenPaiRuns
from components.openpai.client.storages import Storages, storages_folder
from components.openpai.client.task_states import JobDetail
from components.plan.model import Plan, RunPlan
from components.platform.calls import LocalCloud, ProviderError, Tell, call_of
from components.platform.client import wait_for_end
from components.platform.local import (
    LiveRun,
    LocalFile,
    LocalPlatform,
    Outputs,
    Removal,
    Row,
    State,
    name_of_resource,
    named_results,
)
from launcher.walking import Budget, open_file, regular_files
from localcloud.openpai.tasks import ABSENT_PLUGINS
from localcloud.openpai.virtual_clusters import VIRTUAL_CLUSTERS
from schemas.name_suggestions import count_noun

RECORD = "stand-ins-openpai.json"
DEPLOYER, USER = "deployer", "user"
CLUSTER, STORAGE, JOBS = "trainyard:cluster", "trainyard:storage", "trainyard:jobs"
_DEFAULT = "default"
# Counting ends here. Larger numbers are shown as `more than`.
_MOST_COUNTED = 1000
_MINUTES_TO_END = 20.0
_OUTPUT = "output"
_MOST_FILES, _MOST_SECONDS = 10_000, 10.0
# The most bytes that are read of a file: it may grow after it was listed.
_LONGEST_BYTES = 1 << 20


class OpenPaiLocalPlatform(LocalPlatform):
    job_type = "trainyard:openpai:Job"
    client = "any client of OpenPAI"
    shown_outputs: tuple[tuple[str, str], ...] = (("cluster", "cluster"), ("bucketUri", "storage"))

    def lost_with_job(self, runs: int) -> str:
        return f"{count_noun(runs, 'run')} of it no longer belong to the stack, and their files stay on the storage"

    def describe_resource(self, row: Row) -> str:
        return f"{row['type'].rpartition(':')[2].lower()} {name_of_resource(row)}"

    def is_named(self, row: Row, own: State, by: State, inputs: str) -> bool:
        """Always false: a stack makes nothing but runs here, and no other stack refers to a run."""
        return False

    def stand_in(self, made: LocalFile, plan: Plan, cloud: LocalCloud, tell: Tell) -> None:
        # A cluster has no policies that have to be made first.
        made.has_access = True
        # The environment has the local cluster's user and token, so the file needs no token.
        written = made.config.get(CLUSTER) or {}
        local = {"uri": cloud.endpoint, "user": DEPLOYER}
        if dict(written) != local:
            made.remarks.append(
                f"cluster {written.get('uri')}: the local cluster stands in for it, and its user {DEPLOYER} for "
                f"{written.get('user')}"
            )
        virtual_cluster = str(written.get("virtualCluster") or _DEFAULT)
        if virtual_cluster not in {one.name for one in VIRTUAL_CLUSTERS}:
            made.remarks.append(f"virtual cluster {virtual_cluster}: `{_DEFAULT}` stands in for it")
        elif virtual_cluster != _DEFAULT:
            local["virtualCluster"] = virtual_cluster
        made.config[CLUSTER] = local
        if storage := str((made.config.get(STORAGE) or {}).get("name") or ""):
            stand_ins, folder = _read_stand_ins(cloud), _storage_folder(cloud, storage)
            if storage not in stand_ins and not folder.is_dir():
                stand_ins = [*stand_ins, storage]
                _write_stand_ins(cloud, stand_ins)
            folder.mkdir(parents=True, exist_ok=True)
            if storage in stand_ins:
                made.remarks.append(f"storage {storage}: an empty folder of this machine stands in")
        jobs = made.config.get(JOBS) or {}
        # A task's log says so, too, but few people read it.
        plugins = ((name, row["plugin"]) for name, job in jobs.items() for row in job.get("plugins") or ())
        for name, plugin in dict.fromkeys(plugins):
            if plugin in ABSENT_PLUGINS:
                made.remarks.append(f"job {name}: the local cluster has no plugin {plugin}: it is left out")

    def remove_stand_ins(self, cloud: LocalCloud, tell: Tell, with_data: bool) -> None:
        kept = []
        for name in _read_stand_ins(cloud):
            if not with_data and _count_files(_storage_folder(cloud, name)):
                kept.append(name)
            else:
                shutil.rmtree(_storage_folder(cloud, name), ignore_errors=True)
        if kept:
            _write_stand_ins(cloud, kept)
        else:
            (cloud.home / RECORD).unlink(missing_ok=True)

    def list_results(
        self, cloud: LocalCloud, outputs: Outputs, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
    ) -> Iterator[str]:
        output = output_folder(cloud, str(nodes[0]["id"]), tell) if nodes else None
        if output is not None:
            yield from named_results(lambda: list(output.sizes().items()), output.read)

    def describe_removal(self, cloud: LocalCloud, rows: Sequence[Row], kept: Sequence[Row], tell: Tell) -> Removal:
        platform, call = local_cluster_runs(cloud), call_of("down", tell)
        live = []
        for job in _living_jobs(platform, rows, tell):
            detail = platform.job(call, job.user, job.name) or {}
            status = detail.get("jobStatus") or {}
            since = moment_of(status.get("submissionTime") or status.get("createdTime"))
            began = datetime.fromisoformat(since) if since else datetime.now(UTC)
            live.append(LiveRun(job.title, str(status.get("state") or "RUNNING"), began))
        return Removal(tuple(live), ())

    def list_data(self, cloud: LocalCloud, tell: Tell) -> list[str]:
        folder = storages_folder(cloud.home)
        storages = sorted(folder.iterdir()) if folder.is_dir() else []
        contents = {one.name: _count_files(one) for one in storages if one.is_dir()}
        return [f"storage  {name} with its {inside}" for name, inside in contents.items() if inside]

    def end_other_runs(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
        """Ends tries of removed jobs. The stack's own runs end when they are removed themselves."""
        platform, call = local_cluster_runs(cloud), call_of("down", tell)
        own = {node["id"] for row in rows for node in (row.get("outputs") or {}).get("nodeRuns") or ()}
        living = _living_jobs(platform, rows, tell)
        others = [node for job in living for node in job.unseen_nodes if node.id not in own]
        if others:
            tell("Ending runs that are not in the stack.")
            platform.cancel(call, others)
            wait_for_end(call, platform, others, _MINUTES_TO_END)

    def empty_buckets(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> int:
        """Does nothing: no stack makes a bucket here."""
        return 0


def local_cluster_session(cloud: LocalCloud, user: str = DEPLOYER) -> Session:
    """A session of the local cluster, by the cloud's environment variables."""
    return Session.of({}, cloud.env_for(user))


def local_cluster_runs(cloud: LocalCloud, user: str = DEPLOYER) -> OpenPaiRuns:
    return OpenPaiRuns(local_cluster_session(cloud, user))


def _storage_folder(cloud: LocalCloud, name: str) -> Path:
    return storages_folder(cloud.home) / name


def _count_files(folder: Path) -> str:
    """The number of files, such as `12 files`, or "". Links are not followed, because tasks may have made them."""
    count = 0
    for _, _, files in os.walk(folder):
        count += len(files)
        if count >= _MOST_COUNTED:
            return f"more than {count_noun(_MOST_COUNTED, 'file')}"
    return count_noun(count, "file") if count else ""


def _read_stand_ins(cloud: LocalCloud) -> list[str]:
    try:
        names: list[str] = json.loads((cloud.home / RECORD).read_text("utf-8"))
        return names
    except FileNotFoundError:
        return []


def _write_stand_ins(cloud: LocalCloud, names: list[str]) -> None:
    draft = cloud.home / f"{RECORD}.{os.getpid()}"
    draft.write_text(json.dumps(names), "utf-8")
    draft.replace(cloud.home / RECORD)


def _living_jobs(platform: OpenPaiRuns, rows: Sequence[Row], tell: Tell) -> Iterator[Job]:
    """The runs of removed jobs that have not ended."""
    tags = [inputs.get("tags") or {} for row in rows if (inputs := row.get("inputs") or {}).get("platform") == PLATFORM]
    going = {(one.get("stack"), one.get("job")) for one in tags}
    if going:
        for job in platform.living_jobs(call_of("down", tell), DEPLOYER):
            if (job.tags.get("stack"), job.tags.get("job")) in going:
                yield job


@dataclass(frozen=True)
class OutputFolder:
    """The files that training wrote to a folder of a storage. Any task may write there, so no link is followed, neither
    in the folder nor on the path to it."""

    storage: Path
    folder: str

    def sizes(self) -> dict[str, int]:
        """The sizes of the files, by name."""
        walk = regular_files(str(self.storage), lambda *_: True, Budget(_MOST_FILES, _MOST_SECONDS), self.folder)
        rows = sorted(walk, key=lambda row: row[0])
        return {name.removeprefix(f"{self.folder}/"): status.st_size for name, status in rows}

    def read(self, name: str) -> bytes:
        with os.fdopen(open_file(str(self.storage), f"{self.folder}/{name}"), "rb") as file:
            return file.read(_LONGEST_BYTES)


def output_folder(cloud: LocalCloud, run_id: str, tell: Tell) -> OutputFolder | None:
    """The output folder of a run's current start. None if the run keeps nothing on a storage, or cannot be read."""
    run, platform, call = RunId.parse(run_id), local_cluster_runs(cloud), call_of("up", tell)
    try:
        job = platform.run_of(call, run.user, run.job) if run else None
        detail = JobDetail((platform.job(call, job.user, job.name) if job else None) or {})
    except ProviderError:
        # The stack is up anyway.
        return None
    if job is None or not job.folder:
        return None
    start = f"{job.folder}/{start_of_job(job.name, detail.attempt)}/{_OUTPUT}"
    place = Storages(storages_folder(cloud.home)).place(job, start)
    return OutputFolder(*place) if place else None


LOCAL = OpenPaiLocalPlatform()
