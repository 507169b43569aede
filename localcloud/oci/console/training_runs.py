# SPDX-License-Identifier: Apache-2.0
"""Joins job runs to training runs, with their ranks. Parts of a job run that never change are read once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.oci.client import calls, job_runs
from components.oci.client.calls import StatusFolder
from components.platform.runs import NodeRun, ranks_of, read_launch_document
from localcloud.console.platform import LONGEST_NAME, MOST_RANKS, MOST_RUNS, RunNode, TrainingRun
from localcloud.oci.tenancy_store import StateStore, StoredResource

# Only the newest job runs are read.
_MOST_JOB_RUNS = 2_000
_CACHE_SECONDS = 1.0
_BATCH = 40
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OciRun(TrainingRun):
    """A run. `job`: the OCID of its job. `place`: the folder with the files of its launchers."""

    job: str
    place: StatusFolder | None


@dataclass(frozen=True, slots=True)
class _Launched:
    """The facts in a job run's launch documents, from which its ranks and its folder follow."""

    start: tuple[str, str]
    names: tuple[tuple[int, str, str], ...]
    attempt: int | None
    place: StatusFolder | None
    variables: tuple[str, ...]


@dataclass
class RunBook:
    """The training runs of one cloud. It parses a job run again only after a change of it."""

    store: StateStore
    _parsed: dict[str, tuple[StoredResource, _Launched]] = field(default_factory=dict)
    _latest: list[OciRun] = field(default_factory=list)
    _changes: int = -1
    _read_at: float = 0.0
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def latest(self) -> list[OciRun]:
        """The newest runs, the newest first. Cached only briefly, because some states change with time."""
        async with self._reading:
            if self._changes != self.store.changes or time.monotonic() > self._read_at + _CACHE_SECONDS:
                changes = self.store.changes
                self._latest = await self._read()
                self._changes, self._read_at = changes, time.monotonic()
            return self._latest

    async def _read(self) -> list[OciRun]:
        starts: dict[tuple[str, str], list[tuple[StoredResource, _Launched]]] = {}
        for resource, launched in await self._job_runs():
            starts.setdefault(launched.start, []).append((resource, launched))
        return [_training_run(members[::-1]) for members in list(starts.values())[:MOST_RUNS]]

    async def _job_runs(self) -> list[tuple[StoredResource, _Launched]]:
        rows = self.store.connection.execute(
            "SELECT id, etag FROM resources WHERE kind = 'job-run' AND live ORDER BY sequence DESC LIMIT ?",
            (_MOST_JOB_RUNS,),
        ).fetchall()
        before, self._parsed = self._parsed, {}
        for number, (identifier, etag) in enumerate(rows):
            parsed = before.get(identifier)
            if parsed is None or parsed[0].etag != etag:
                if number % _BATCH == 0:
                    await asyncio.sleep(0)  # so that other clients of the server need not wait
                resource = self.store.get(identifier)
                if resource is None:
                    continue
                parsed = (resource, _read_launch(resource))
            self._parsed[identifier] = parsed
        return list(self._parsed.values())


def _training_run(members: list[tuple[StoredResource, _Launched]]) -> OciRun:
    """`members` are the job runs of one start, the oldest first."""
    first, first_launched = members[0]
    tags = first.body.get("freeformTags") or {}
    named = tags.get("job") and tags.get("run")
    nodes = [
        RunNode(
            rank,
            role[:LONGEST_NAME],
            NodeRun(
                (name or resource.name)[:LONGEST_NAME], resource.id, resource.shown_state,
                str(resource.body.get("lifecycleDetails") or ""), resource.body.get("timeStarted"),
                resource.body.get("timeFinished"),
            ),
            str((resource.body.get("logDetails") or {}).get("logId") or ""),
            resource.id,
        )
        for resource, launched in members
        for rank, role, name in launched.names
    ]  # fmt: skip
    return OciRun(
        key=first.id,
        stack=str(tags.get("stack") or ""),
        title=f"{tags['job']}/{tags['run']}" if named else first.name,
        attempt=first_launched.attempt,
        created=first.created,
        nodes=tuple(sorted(nodes, key=lambda node: (node.rank, node.run.name))[:MOST_RANKS]),
        variables=tuple(sorted({name for _, launched in members for name in launched.variables})),
        job=str(first.body.get("jobId") or ""),
        place=next((launched.place for _, launched in members if launched.place), None),
    )


def _read_launch(resource: StoredResource) -> _Launched:
    tags = resource.body.get("freeformTags") or {}
    name, role, rank = job_runs.node_of(tags)
    layout = resource.body.get("jobNodeConfigurationOverrideDetails") or {}
    groups = layout.get("jobNodeGroupConfigurationDetailsList") or []
    configurations = [group.get("jobConfigurationDetails") or {} for group in groups]
    configurations = configurations or [resource.body.get("jobConfigurationOverrideDetails") or {}]
    environments = [configuration.get("environmentVariables") or {} for configuration in configurations]
    documents = [read_launch_document(variables) for variables in environments]
    folders = (
        calls.status_folder(document, resource.id, variables)
        for document, variables in zip(documents, environments, strict=True)
    )
    attempt = documents[0].get("attempt")
    names = [
        (number, str(document.get("role")), f"{document.get('role')}-{index}")
        for document in documents
        for index, number in enumerate(ranks_of(document)[:MOST_RANKS])
    ]
    # Without launch documents, all nodes of node groups have the same role.
    names = (names or [(0, "", "")]) if groups else [(rank, role, name)]
    return _Launched(
        start=(tags.get(job_runs.RUN_TAG, ""), job_runs.start_of_job_run(resource.id, environments[0])),
        names=tuple(names),
        attempt=attempt if type(attempt) is int and abs(attempt) < 10**6 else None,
        place=next((place for place in map(calls.parse_bucket_folder, folders) if place), None),
        variables=tuple(sorted({name for variables in environments for name in variables})),
    )
