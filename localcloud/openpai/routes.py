# SPDX-License-Identifier: Apache-2.0
"""The operations of the REST server: what clients need of version 2."""

from __future__ import annotations

from localcloud.openpai import job_calls, people_calls
from localcloud.openpai.rest import Route
from localcloud.openpai.submitting import submit

_JOB = "/jobs/{job}"
_TASK = _JOB + "/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts"

ROUTES = (
    Route("GetInfo", "GET", "/info", people_calls.info, guests=True),
    Route("BasicLogin", "POST", "/authn/basic/login", people_calls.login, guests=True),
    Route("BasicLogout", "DELETE", "/authn/basic/logout", people_calls.logout),
    Route("GetTokens", "GET", "/tokens", people_calls.list_tokens),
    Route("CheckToken", "GET", "/tokens/check", people_calls.check_token),
    Route("CreateApplicationToken", "POST", "/tokens/application", people_calls.application_token),
    Route("DeleteToken", "DELETE", "/tokens/{token}", people_calls.revoke_token),
    Route("ListUsers", "GET", "/users", people_calls.list_users),
    Route("GetUser", "GET", "/users/{user}", people_calls.get_user),
    Route("ListVirtualClusters", "GET", "/virtual-clusters", people_calls.list_clusters),
    Route("GetVirtualCluster", "GET", "/virtual-clusters/{cluster}", people_calls.get_cluster),
    Route("ListStorages", "GET", "/storages", people_calls.list_storages),
    Route("GetStorage", "GET", "/storages/{storage}", people_calls.get_storage),
    Route("SubmitJob", "POST", "/jobs", submit),
    Route("ListJobs", "GET", "/jobs", job_calls.list_jobs),
    Route("GetJob", "GET", _JOB, job_calls.get_job),
    Route("GetJob", "GET", _JOB + "/attempts/{attempt}", job_calls.get_job),
    Route("GetJobConfig", "GET", _JOB + "/config", job_calls.get_config),
    Route("ExecuteJob", "PUT", _JOB + "/executionType", job_calls.execute),
    Route("AddTag", "PUT", _JOB + "/tag", job_calls.add_tag),
    Route("DeleteTag", "DELETE", _JOB + "/tag", job_calls.delete_tag),
    Route("GetEvents", "GET", _JOB + "/events", job_calls.events),
    Route("GetJobAttemptsHealth", "GET", _JOB + "/job-attempts/healthz", job_calls.healthy),
    Route("ListJobAttempts", "GET", _JOB + "/job-attempts", job_calls.job_attempts),
    Route("GetJobAttempt", "GET", _JOB + "/job-attempts/{attempt}", job_calls.get_job_attempt),
    Route("GetTask", "GET", _TASK, job_calls.get_task),
    Route("GetTaskLogs", "GET", _TASK + "/{try}/logs", job_calls.get_logs),
)
