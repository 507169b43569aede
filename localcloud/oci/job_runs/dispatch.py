# SPDX-License-Identifier: Apache-2.0
"""Gives accepted job runs to the hosts, and records their states."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localcloud.hosts import evidence
from localcloud.hosts.assignment import Assignment, CannotStartError, Outline, RunVerdict
from localcloud.oci.job_runs import run_resources
from localcloud.oci.job_runs.assignments import assignment_of, outline_of
from localcloud.oci.ocids import RUN_ACTIVE, RUN_TERMINAL
from localcloud.oci.operations import OciCloud
from localcloud.oci.services.logs import record_flows
from localcloud.oci.services.network import subnets
from localcloud.oci.store import StoredResource
from localcloud.server import http

BEGUN_AGAIN = "Begun again: the local cloud was killed while the run was in progress, and its hosts with it"
# A node group that has run is ACTIVE in NodeGroupDetails, which does not have the states of runs.
_GROUP_STATES = {"FAILED": "FAILED"}


class JobRuns:
    """The job runs of one cloud."""

    def __init__(self, cloud: OciCloud) -> None:
        self._cloud = cloud

    def unfinished(self) -> Iterator[tuple[str, bool]]:
        for run in self._cloud.store.live("job-run"):
            if run.state in RUN_ACTIVE:
                yield run.id, run.state == "CANCELING"

    def outline(self, run: str) -> Outline | None:
        current = self._current(run)
        job = self._cloud.store.get(current.body["jobId"])
        return outline_of(current, job) if job else None

    async def assignment(self, run: str, folder: Path) -> Assignment:
        return await assignment_of(self._cloud, self._current(run), folder)

    def begins_again(self, run: str) -> None:
        again = self._current(run)
        if again.state == "IN_PROGRESS":
            with self._cloud.store.transaction():
                again = self._current(run)
                self._cloud.store.put(again, body={**again.body, "lifecycleDetails": BEGUN_AGAIN})

    def started(self, run: str) -> None:
        self._change(run, "IN_PROGRESS", "", timeStarted=http.rfc3339(http.now()))

    def ended(self, run: str, verdict: RunVerdict, folder: Path) -> None:
        more: dict[str, Any] = {"timeFinished": http.rfc3339(http.now())}
        if verdict.groups:
            more["nodeGroupDetailsList"] = [
                {"name": name, "lifecycleState": _GROUP_STATES.get(state, "ACTIVE")} for name, state in verdict.groups
            ]
        self._record_flows(run, folder)
        self._change(run, verdict.state, verdict.details, **more)
        run_resources.remove_token(folder)

    def _record_flows(self, run: str, folder: Path) -> None:
        """Records flows before the run's VNICs are removed. A flow log keeps its records."""
        document, current = evidence.read(folder), self._cloud.store.get(run)
        if document is not None and current is not None:
            with self._cloud.store.transaction():
                record_flows(self._cloud, current, document)
        self._cloud.recorded_flows.pop(run, None)

    def _change(self, run_id: str, state: str, details: str, **more: Any) -> None:
        with self._cloud.store.transaction():
            run = self._cloud.store.get(run_id)
            if run is None or not run.live or (state == "IN_PROGRESS" and run.state != "ACCEPTED"):
                return
            body = {**run.body, "lifecycleDetails": details, **more}
            self._cloud.store.put(run, state=state, body=body)
            if state in RUN_TERMINAL:
                subnets.detach(self._cloud.store, run_id)

    def _current(self, run_id: str) -> StoredResource:
        run = self._cloud.store.get(run_id)
        if run is None:
            raise CannotStartError("The run is gone")
        return run
