# SPDX-License-Identifier: Apache-2.0
"""Ends runs that no state has: tries, and those that a person started. OCI deletes no job while they are alive."""

from __future__ import annotations

from collections.abc import Sequence

from components.oci.client import job_runs
from components.oci.client.runs import OciRunPlatform
from components.oci.local.sessions import DEPLOYER, session_of
from components.oci.local.types import JOB
from components.platform.calls import Tell, call_of
from components.platform.local_cloud import LocalCloud
from components.platform.runs import TERMINAL
from components.platform.states import Row
from components.platform.waiting import wait_for_end
from schemas.names import plural

_MINUTES_TO_END = 20.0


def end_other_runs(cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
    """`rows` are removed. The runs among them end with their own removal."""
    platform, call = OciRunPlatform(session_of(cloud, DEPLOYER)), call_of("down", tell)
    own = {node["id"] for row in rows for node in (row.get("outputs") or {}).get("nodeRuns") or ()}
    jobs = [row["id"] for row in rows if row["type"] == JOB]
    alive = [
        job_runs.node_run(run)
        for job in jobs
        for run in platform.runs_of_job(call, cloud.compartment, job, 0)
        if run.id not in own and run.lifecycle_state not in TERMINAL
    ]
    if alive:
        tell(f"Ending {plural(len(alive), 'job run')} beside the stack's own: no job goes while its runs are alive.")
        platform.cancel(call, alive)
        wait_for_end(call, platform, alive, _MINUTES_TO_END)
