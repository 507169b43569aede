# SPDX-License-Identifier: Apache-2.0
"""The deployed job of a stack, and the newest start of the run that a try is like, found by their tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from components.oci.client import job_runs
from components.oci.client.calls import attempt, pages
from components.oci.client.runs import OciRunPlatform
from components.oci.client.session import Session
from components.platform.calls import Call
from components.platform.tries import PlannedTry, TryError
from components.platform.values import Properties, Secret


@dataclass(frozen=True)
class Deployed:
    """`like`: the inputs that made the run which the try is like. None if its job has no such run."""

    job: Any
    like: Properties | None

    @property
    def log_group(self) -> str | None:
        return self._log("log_group_id")

    @property
    def log(self) -> str | None:
        return self._log("log_id")

    def _log(self, field: str) -> str | None:
        logs = self.job.job_log_configuration_details
        return getattr(logs, field, None) if logs is not None and logs.enable_logging else None

    def variables(self, node: Mapping[str, Any]) -> dict[str, str]:
        """The environment of a deployed node in plain text: the cloud tells it to whoever may read runs."""
        values = node.get("environment") or {}
        return {name: value.value if isinstance(value, Secret) else value for name, value in values.items()}


def find_deployed(session: Session, call: Call, compartment: str, planned: PlannedTry) -> Deployed:
    stack, name, client = planned.plan.stack, planned.job.name, session.client("data_science")
    jobs = [job for job in _jobs(client, call, compartment) if (job.freeform_tags or {}).get("stack") == stack]
    own = [job for job in jobs if job.freeform_tags.get("job") == name]
    if not jobs:
        raise TryError(f"nothing of the stack {stack} is deployed in {compartment}")
    if not own:
        deployed = sorted({job.freeform_tags.get("job", "") for job in jobs})
        raise TryError(f"the job {name} is not deployed in {compartment}; of {stack} are: {', '.join(deployed)}")
    # A job that is being replaced is there twice for a while.
    newest = max(own, key=lambda job: job.time_created)
    job = attempt(call, "Read the job", lambda: client.get_job(newest.id)).data
    runs = OciRunPlatform(session)
    past = list(runs.runs_of_job(call, compartment, job.id, 0))
    _refuse_taken(past, planned)
    main = _main_of_newest(past, planned.like.name) if planned.like else None
    described = runs.describe(call, main.id) if main is not None else None
    return Deployed(job, described[0] if described else None)


def _jobs(client: Any, call: Call, compartment: str) -> Iterator[Any]:
    def list_page(**options: Any) -> Any:
        ask = partial(client.list_jobs, compartment, lifecycle_state="ACTIVE", **options)
        return attempt(call, "List the jobs", ask)

    return pages(list_page)


def _refuse_taken(past: list[Any], planned: PlannedTry) -> None:
    """Another run of this name would share its checkpoints and its line in `trainyard runs`."""
    if any((run.freeform_tags or {}).get("run") == planned.run.name for run in past):
        raise TryError(f"there was a try {planned.title} already: give this one another --name, or none")


def _main_of_newest(past: list[Any], name: str) -> Any:
    """The job run of the main node of the newest start. None if there is no start, or none that a state still has."""
    starts: dict[str, list[Any]] = {}
    for run in past:
        tags = run.freeform_tags or {}
        if tags.get("run") == name and job_runs.RUN_TAG in tags and job_runs.is_like(tags) is None:
            starts.setdefault(tags[job_runs.RUN_TAG], []).append(run)
    if not starts:
        return None
    newest = max(starts.values(), key=lambda runs: max(run.time_accepted for run in runs))
    return min(newest, key=lambda run: job_runs.node_of(run.freeform_tags)[2])
