# SPDX-License-Identifier: Apache-2.0
"""The current runs of a stack: job runs grouped by their tags, and the launcher's status of each rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from components.oci.client import calls, job_runs, logs
from components.oci.client.calls import oci_refusal
from components.oci.client.compartment_runs import CompartmentRuns
from components.platform import status
from components.platform.calls import Call
from components.platform.client import RunReader
from components.platform.runs import ranks_of, read_launch_document
from components.platform.status import ConnectionsSeen, NodeStatus, RunStatus, WantedRuns, run_key


@dataclass(frozen=True, slots=True)
class Launched:
    """The launch settings of one node, or of one group of like nodes, with which the launcher's status is found.

    `folder`: that of the run's start.
    """

    role: str
    ranks: tuple[int, ...]
    attempt: int
    folder: str | None
    log: str | None


@dataclass
class OciRunReader(RunReader):
    """`witness`: reports packets that the firewalls of a run's nodes dropped."""

    runs: CompartmentRuns
    wanted: WantedRuns
    witness: Callable[[RunStatus], ConnectionsSeen | None]
    _launched: dict[str, tuple[Launched, ...]] = field(default_factory=dict)
    _ended: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _unreadable: set[str] = field(default_factory=set)

    def look(self, call: Call, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        together: dict[str, list[Any]] = {}
        for run in (run for run in self.runs.listed(call) if is_wanted(self.wanted, run.freeform_tags or {})):
            together.setdefault(run.freeform_tags[job_runs.RUN_TAG], []).append(run)
        newest: dict[tuple[str, ...], list[Any]] = {}
        for start in together.values():
            key = run_key(start[0].freeform_tags)
            if key not in newest or _accepted_at(start) > _accepted_at(newest[key]):
                newest[key] = start
        seen = [self._run(call, start, deeply) for start in (together if history else newest).values()]
        return sorted(seen, key=lambda run: (run.created, run.title))

    def _run(self, call: Call, runs: list[Any], deeply: bool) -> RunStatus:
        nodes: list[NodeStatus] = []
        launched: list[Launched] = []
        for run in runs:
            shown = self._launch(call, run.id) if deeply else ()
            launched += shown
            nodes += _node_statuses(run, shown)
        folder = next((one.folder for one in launched if one.folder), None)
        if deeply:
            nodes = [replace(node, launcher_status=self._launcher_status(call, folder, node)) for node in nodes]
        tags = runs[0].freeform_tags
        seen = RunStatus(
            stack=tags.get("stack", ""),
            job=tags.get("job", ""),
            name=tags.get("run", ""),
            attempt=launched[0].attempt if launched else None,
            created=min(run.time_accepted for run in runs),
            nodes=tuple(sorted(nodes, key=lambda node: (node.rank, node.run.name))),
            folder=folder,
        )
        # A successful run lacked no connection.
        return replace(seen, connections=self.witness(seen)) if deeply and seen.state != "SUCCEEDED" else seen

    def _launch(self, call: Call, run_id: str) -> tuple[Launched, ...]:
        if run_id not in self._launched:
            run = self.runs.get(call, run_id)
            self._launched[run_id] = tuple(_launched_nodes(run)) if run is not None else ()
        return self._launched[run_id]

    def _launcher_status(self, call: Call, folder: str | None, node: NodeStatus) -> Mapping[str, Any] | None:
        """The status object of a rank. None if it does not exist yet, or may not be read."""
        place = calls.parse_bucket_folder(folder)
        if place is None or node.run.state == "ACCEPTED" or place.bucket in self._unreadable:
            return None
        name = place.status(node.rank)
        if name in self._ended:
            return self._ended[name]
        ending = self._status(call, place.namespace, place.bucket, name)
        if ending is not None and node.run.over:
            self._ended[name] = ending
        return ending

    def _status(self, call: Call, namespace: str, bucket: str, name: str) -> Mapping[str, Any] | None:
        """Reads once, without retries: states and logs are shown without progress, too."""
        client = self.runs.session.client("object_storage")
        try:
            part = f"bytes=0-{status.LONGEST_BYTES - 1}"
            return status.parse_status(client.get_object(namespace, bucket, name, range=part).data.content)
        except Exception as error:
            refused = oci_refusal("Read a status", error)
            if getattr(error, "code", None) == "NotAuthorizedOrNotFound":
                self._unreadable.add(bucket)
                call.report.warning(f"progress is not shown: {refused.cause}")
            return None


def is_wanted(wanted: WantedRuns, tags: Mapping[str, str]) -> bool:
    """Whether the tags match. Job runs that were started without trainyard never do."""
    return job_runs.RUN_TAG in tags and wanted.includes(tags)


def _accepted_at(runs: list[Any]) -> datetime:
    latest: datetime = max(run.time_accepted for run in runs)
    return latest


def _node_statuses(run: Any, launched: tuple[Launched, ...]) -> Iterator[NodeStatus]:
    name, role, rank = job_runs.node_of(run.freeform_tags)
    groups = [one for one in launched if len(launched) > 1 or len(one.ranks) > 1]
    if name or not groups:
        log = launched[0].log if launched else None
        yield NodeStatus(rank, job_runs.node_of_job_run(run, name or None), role, log)
        return
    for group in groups:
        for index, one in enumerate(group.ranks):
            yield NodeStatus(one, job_runs.node_of_job_run(run, f"{group.role}-{index}"), group.role, group.log)


def _launched_nodes(run: Any) -> Iterator[Launched]:
    place = logs.log_of_job_run(run)
    node = job_runs.node_of(run.freeform_tags or {})
    layout = run.job_node_configuration_override_details
    groups = getattr(layout, "job_node_group_configuration_details_list", None) or ()
    configurations = [group.job_configuration_details for group in groups] or [run.job_configuration_override_details]
    for configuration in configurations:
        variables = getattr(configuration, "environment_variables", None) or {}
        document = read_launch_document(variables)
        ranks = ranks_of(document) if groups else (node[2],)
        role, times = document.get("role"), document.get("attempt")
        folder = calls.status_folder(document, run.id, variables)
        yield Launched(
            role if isinstance(role, str) else node[1], ranks, times if type(times) is int else 1, folder, place
        )
