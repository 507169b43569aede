# SPDX-License-Identifier: Apache-2.0
"""Reads what a cluster runs in the name of a stack: jobs that say they are a run of it, and that its state does not
have. Anybody may submit any job, so the words in a job only claim whose it is.

The stack's own runs are compared by their states (trainyard/drift). Networks and access belong to the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from components.openpai.client.cluster_calls import list_cluster_jobs
from components.openpai.client.cluster_errors import ApiError
from components.openpai.client.cluster_jobs import ClusterJobs
from components.openpai.client.cluster_session import openpai_session_of_caller
from components.openpai.client.job_status import JOBS_AT_ONCE
from components.openpai.client.jobs import Job, RunId, inputs_of_job
from components.plan.model import RUN_TYPE
from components.platform.calls import Call, call_of, read_at_once
from components.platform.live import LiveQuestion, LiveReading, LiveSide, Reading
from components.platform.runs import liked_by

# Those that do something: the stack's earlier starts have ended, or are stopping.
_AT_WORK = "WAITING,RUNNING"
_REFUSED = frozenset({401, 403})
JUDGED: Mapping[str, frozenset[str]] = {}


def read_live_openpai(question: LiveQuestion) -> LiveSide:
    declared = question.declared
    reading = Reading(declared, lambda error: isinstance(error, ApiError) and error.status in _REFUSED)
    jobs, call = ClusterJobs(openpai_session_of_caller(question.where)), call_of("drift", question.where.tell)
    # Without an address, the runs are not read either, which the drift says.
    at_work = reading.allowed("the jobs of the cluster", partial(_jobs_at_work, jobs, call)) if jobs.session.uri else ()
    ours = {run[:2] for resource in declared.of(RUN_TYPE) if (run := RunId.parse(resource.id))}
    for job in at_work or ():
        is_try = liked_by(job.fingerprint) is not None
        if job.tags.get("stack") == declared.stack and (job.user, job.name) not in ours and not is_try:
            identity, inputs = f"{job.user}~{job.name}", inputs_of_job(job, jobs.session.uri)
            reading.add(
                RUN_TYPE, identity, inputs, f"job {identity}, which says that it is the stack's run {job.title}"
            )
    return reading.side(JUDGED)


def _jobs_at_work(jobs: ClusterJobs, call: Call) -> list[Job]:
    """Jobs of everybody, whatever their names: a portal gives a copy another one."""
    rows = list(list_cluster_jobs(jobs.session, call, "List the jobs", state=_AT_WORK))
    return [job for job in read_at_once(partial(jobs.listed_run, call), rows, JOBS_AT_ONCE) if job is not None]


LIVE_READING = LiveReading(read_live_openpai)
