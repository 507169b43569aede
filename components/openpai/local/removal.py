# SPDX-License-Identifier: Apache-2.0
"""What goes with a stack of OpenPAI: its live runs. Storages belong to the cluster, and stay."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from components.openpai.client.jobs import PLATFORM, Job, RunId, moment_of, start_of
from components.openpai.client.runs import OpenPaiRunPlatform
from components.openpai.client.states import JobDetail
from components.openpai.client.status import Storages, storages_folder
from components.openpai.local.stack import DEPLOYER, runs_of
from components.platform.calls import ProviderError, Tell, call_of
from components.platform.local import LiveRun, Removal, Row
from components.platform.local_cloud import LocalCloud
from components.platform.results import LINES_READ, NOT_READ, named_results
from components.platform.runs import NodeRun
from components.platform.waiting import wait_for_end
from launcher.walking import Budget, open_file, regular_files

_MINUTES_TO_END = 20.0
_OUTPUT = "output"
_MOST_FILES, _MOST_SECONDS = 10_000, 10.0
# More than anybody asks for. A file may grow after it was listed.
_LONGEST_BYTES = 1 << 20


def describe_removal(cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> Removal:
    """`rows` are removed."""
    platform, call = runs_of(cloud), call_of("down", tell)
    live = []
    for job in _living(platform, rows, tell):
        detail = platform.job(call, job.user, job.name) or {}
        status = detail.get("jobStatus") or {}
        since = moment_of(status.get("submissionTime") or status.get("createdTime"))
        began = datetime.fromisoformat(since) if since else datetime.now(UTC)
        live.append(LiveRun(job.title, str(status.get("state") or "RUNNING"), began))
    return Removal(tuple(live), ())


def end_other_runs(cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
    """Tries of the jobs that go. Runs of the stack itself end with their own removal."""
    platform, call = runs_of(cloud), call_of("down", tell)
    own = {node["id"] for row in rows for node in (row.get("outputs") or {}).get("nodeRuns") or ()}
    living = _living(platform, rows, tell)
    others = [NodeRun(str(node["name"]), job.run_id(node), "") for job in living for node in job.nodes]
    others = [node for node in others if node.id not in own]
    if others:
        tell("Ending runs beside the stack's own.")
        platform.cancel(call, others)
        wait_for_end(call, platform, others, _MINUTES_TO_END)


def _living(platform: OpenPaiRunPlatform, rows: Sequence[Row], tell: Tell) -> Iterator[Job]:
    """The runs that have not ended, of the jobs whose runs go."""
    tags = [inputs.get("tags") or {} for row in rows if (inputs := row.get("inputs") or {}).get("platform") == PLATFORM]
    going = {(one.get("stack"), one.get("job")) for one in tags}
    if going:
        for job in platform.living_jobs(call_of("down", tell), DEPLOYER):
            if (job.tags.get("stack"), job.tags.get("job")) in going:
                yield job


@dataclass(frozen=True)
class OutputFolder:
    """What training left in a folder of a storage. All in the storage is a stranger's: no link is followed, also none
    on the way to the folder."""

    storage: Path
    folder: str

    def sizes(self) -> dict[str, int]:
        """By the names of the files."""
        walk = regular_files(str(self.storage), lambda *_: True, Budget(_MOST_FILES, _MOST_SECONDS), self.folder)
        rows = sorted(walk, key=lambda row: row[0])
        return {name.removeprefix(f"{self.folder}/"): status.st_size for name, status in rows}

    def read(self, name: str) -> bytes:
        with os.fdopen(open_file(str(self.storage), f"{self.folder}/{name}"), "rb") as file:
            return file.read(_LONGEST_BYTES)


def read_last_lines(cloud: LocalCloud, run_id: str, tell: Tell) -> list[str]:
    """The last lines of a node, as anybody would read them."""
    try:
        return runs_of(cloud).last_lines(call_of("up", tell), NodeRun("", run_id, ""), LINES_READ)
    except ProviderError:
        # The stack is up all the same.
        return [NOT_READ]


def list_results(cloud: LocalCloud, nodes: Sequence[Mapping[str, Any]], tell: Tell) -> Iterator[str]:
    """The files that the present start has left; `nodes` has the main one first."""
    output = output_folder(cloud, str(nodes[0]["id"]), tell) if nodes else None
    if output is not None:
        yield from named_results(lambda: list(output.sizes().items()), output.read)


def output_folder(cloud: LocalCloud, run_id: str, tell: Tell) -> OutputFolder | None:
    """The output folder of a run's present start. None if the run keeps nothing on a storage, or cannot be read."""
    run, platform, call = RunId.parse(run_id), runs_of(cloud), call_of("up", tell)
    try:
        job = platform.run_of(call, run.user, run.job) if run else None
        detail = JobDetail((platform.job(call, job.user, job.name) if job else None) or {})
    except ProviderError:
        # The stack is up all the same.
        return None
    if job is None or not job.folder:
        return None
    start = f"{job.folder}/{start_of(job.name, detail.attempt)}/{_OUTPUT}"
    place = Storages(storages_folder(cloud.home)).place(job, start)
    return OutputFolder(*place) if place else None
