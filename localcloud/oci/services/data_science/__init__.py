# SPDX-License-Identifier: Apache-2.0
"""Data Science: projects, jobs with their artifacts, and job runs."""

from __future__ import annotations

from localcloud.oci import kinds
from localcloud.oci.operations import ApiOperation
from localcloud.oci.services.data_science import jobs, runs
from localcloud.oci.services.data_science.jobs import COMPUTE_TARGET, JOB, NOTEBOOK, PROJECT, SERVICE, VERSION
from localcloud.oci.services.data_science.runs import JOB_RUN


def operations() -> list[ApiOperation]:
    artifact = f"{VERSION}/jobs/{{jobId}}/artifact"
    cancel = f"{VERSION}/jobRuns/{{jobRunId}}/actions/cancelJobRun"
    notebook = f"{VERSION}/notebookSessions/{{notebookSessionId}}/actions"
    return [
        *(row for kind in (PROJECT, JOB, JOB_RUN, NOTEBOOK, COMPUTE_TARGET) for row in kinds.operations(kind)),
        ApiOperation("CreateJobArtifact", "POST", artifact, jobs.put_artifact, SERVICE, streams=True),
        ApiOperation("HeadJobArtifact", "HEAD", f"{artifact}/content", jobs.head_artifact, SERVICE),
        ApiOperation("GetJobArtifactContent", "GET", f"{artifact}/content", jobs.get_artifact, SERVICE),
        ApiOperation("CancelJobRun", "POST", cancel, runs.cancel, SERVICE),
        ApiOperation("ActivateNotebookSession", "POST", f"{notebook}/activate", jobs.activate, SERVICE),
        ApiOperation("DeactivateNotebookSession", "POST", f"{notebook}/deactivate", jobs.deactivate, SERVICE),
        ApiOperation("ListJobShapes", "GET", f"{VERSION}/jobShapes", jobs.list_, SERVICE),
        ApiOperation("ListComputeTargetShapes", "GET", f"{VERSION}/computeTargetShapes", jobs.list_, SERVICE),
        ApiOperation("ListNotebookSessionShapes", "GET", f"{VERSION}/notebookSessionShapes", jobs.list_, SERVICE),
    ]
