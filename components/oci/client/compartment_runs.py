# SPDX-License-Identifier: Apache-2.0
"""The job runs of a compartment, as OCI Data Science lists and describes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from components.oci.client import job_runs
from components.oci.client.calls import call_oci, list_oci_pages, read_from_oci_if_exists
from components.oci.client.session import Session
from components.platform.calls import Call
from components.platform.runs import DELETED, NodeRun
from components.platform.values import Properties


@dataclass
class CompartmentRuns:
    session: Session
    compartment: str = ""

    @property
    def _client(self) -> Any:
        return self.session.client("data_science")

    def get(self, call: Call, run_id: str) -> Any:
        return read_from_oci_if_exists(call, "Read the job run", lambda: self._client.get_job_run(run_id))

    def describe(self, call: Call, run_id: str) -> tuple[Properties, list[NodeRun]] | None:
        main = self.get(call, run_id)
        if main is None or main.lifecycle_state == "DELETED":
            return None
        runs = [main, *self._siblings(call, main)]
        inputs = job_runs.inputs_of_job_runs(runs)
        if inputs["layout"] == "node-groups":
            return inputs, job_runs.group_runs(main, [node["name"] for node in inputs["nodes"]])
        names = [node["name"] for node in inputs["nodes"]]
        return inputs, [job_runs.node_of_job_run(run, name) for run, name in zip(runs, names, strict=True)]

    def _siblings(self, call: Call, main: Any) -> list[Any]:
        mark = (main.freeform_tags or {}).get(job_runs.RUN_TAG)
        if not mark:
            return []
        past = self.runs_of_job(call, main.compartment_id, main.job_id, 0)
        others = [run.id for run in job_runs.job_runs_of_start(past, mark) if run.id != main.id]
        runs = [run for run in (self.get(call, run_id) for run_id in others) if run is not None]
        return sorted(runs, key=lambda run: job_runs.node_of(run.freeform_tags or {})[2])

    def runs_of_job(self, call: Call, compartment: str, job: str, access_minutes: float) -> Iterator[Any]:
        """Job runs of a job, with the fields of a list."""
        return self._listed(call, "List the job's runs", access_minutes, compartment, job_id=job)

    def listed(self, call: Call) -> Iterator[Any]:
        """All job runs of the compartment, with the fields of a list."""
        return self._listed(call, "List the job runs", 0, self.compartment)

    def _listed(self, call: Call, what: str, access_minutes: float, *place: str, **wanted: Any) -> Iterator[Any]:
        def list_page(**options: Any) -> Any:
            ask = partial(self._client.list_job_runs, *place, **wanted, **options)
            return call_oci(call, what, ask, access_minutes)

        return (run for run in list_oci_pages(list_page) if run.lifecycle_state != DELETED)
