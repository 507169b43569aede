# SPDX-License-Identifier: Apache-2.0
"""Data Science: projects, jobs with their artifacts, and job runs."""

from __future__ import annotations

from localcloud.oci import kinds
from localcloud.oci.operations import ApiOperation
from localcloud.oci.services.data_science import job_runs, jobs
from localcloud.oci.services.data_science.job_runs import JOB_RUN
from localcloud.oci.services.data_science.jobs import COMPUTE_TARGET, JOB, NOTEBOOK, PROJECT, SERVICE, VERSION


def data_science_operations() -> list[ApiOperation]:
    artifact = f"{VERSION}/jobs/{{jobId}}/artifact"
    cancel = f"{VERSION}/jobRuns/{{jobRunId}}/actions/cancelJobRun"
    notebook = f"{VERSION}/notebookSessions/{{notebookSessionId}}/actions"
    return [
        *(row for kind in (PROJECT, JOB, JOB_RUN, NOTEBOOK, COMPUTE_TARGET) for row in kinds.kind_operations(kind)),
        ApiOperation("CreateJobArtifact", "POST", artifact, jobs.put_artifact, SERVICE, streams=True),
        ApiOperation("HeadJobArtifact", "HEAD", f"{artifact}/content", jobs.head_artifact, SERVICE),
        ApiOperation("GetJobArtifactContent", "GET", f"{artifact}/content", jobs.get_artifact, SERVICE),
        ApiOperation("CancelJobRun", "POST", cancel, job_runs.cancel_run, SERVICE),
        ApiOperation("ActivateNotebookSession", "POST", f"{notebook}/activate", jobs.activate_notebook, SERVICE),
        ApiOperation("DeactivateNotebookSession", "POST", f"{notebook}/deactivate", jobs.deactivate_notebook, SERVICE),
        ApiOperation("ListJobShapes", "GET", f"{VERSION}/jobShapes", jobs.list_shapes, SERVICE),
        ApiOperation("ListComputeTargetShapes", "GET", f"{VERSION}/computeTargetShapes", jobs.list_shapes, SERVICE),
        ApiOperation("ListNotebookSessionShapes", "GET", f"{VERSION}/notebookSessionShapes", jobs.list_shapes, SERVICE),
    ]
