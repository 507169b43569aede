# SPDX-License-Identifier: Apache-2.0
"""The API of job runs. localcloud/hosts carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localcloud.oci import kinds, limits, ocids, tenancy
from localcloud.oci.kinds import ResourceKind
from localcloud.oci.oci_errors import incorrect_state, related_not_found
from localcloud.oci.ocids import new_ocid
from localcloud.oci.operations import ApiCall
from localcloud.oci.services.data_science.jobs import (
    SERVICE,
    VERSION,
    forget_folder,
    require_configurations,
    require_logging,
    require_network,
    require_targets,
    subnet_of_nodes,
)
from localcloud.oci.services.logs import LOG
from localcloud.oci.tenancy_store import StoredResource
from localcloud.server import http
from localcloud.server.http import Json, Reply


def _complete_run(call: ApiCall, body: Json) -> Json:
    job = call.store.get(body["jobId"])
    if job is None or job.parent != body["projectId"]:
        raise related_not_found(f"jobId {body['jobId']} in the project {body['projectId']}")
    if job.state != "ACTIVE":
        raise incorrect_state(f"The job {job.id} is {job.state}: it has neither an artifact nor a container image yet")
    infrastructure = _run_infrastructure(job.body, body)
    require_configurations(body.get("jobConfigurationOverrideDetails"), body.get("jobNodeConfigurationOverrideDetails"))
    logging = body.get("jobLogConfigurationOverrideDetails") or job.body.get("jobLogConfigurationDetails")
    require_logging(call, logging)
    layout = body.get("jobNodeConfigurationOverrideDetails") or job.body.get("jobNodeConfigurationDetails") or {}
    subnet = subnet_of_nodes(infrastructure, layout)
    require_network(call, subnet)
    require_targets(call, infrastructure, layout)
    nodes = limits.nodes_by_shape(infrastructure, layout)
    for shape, count in nodes:
        limits.require_nodes(call, shape, count)
    return {
        "jobConfigurationOverrideDetails": {"jobType": "DEFAULT"},
        **body,
        "timeAccepted": http.format_rfc3339(http.current_moment()),
        # A job of node groups has no common infrastructure: each group has its own.
        **({"jobInfrastructureConfigurationDetails": infrastructure} if infrastructure else {}),
        "jobStorageMountConfigurationDetailsList": job.body.get("jobStorageMountConfigurationDetailsList", []),
        **_log_details(call, logging, body),
        # The nodes that count against limits, and their subnet. OCI's model lacks these, so clients never see them.
        "nodes": nodes,
        "subnet": subnet,
    }


def _run_infrastructure(job: Mapping[str, Any], run: Json) -> Json:
    """The job's infrastructure with the run's changes. If the run names another type, only the run's counts."""
    own, other = (
        each or {}
        for each in (
            job.get("jobInfrastructureConfigurationDetails"), run.get("jobInfrastructureConfigurationOverrideDetails")
        )
    )  # fmt: skip
    of_type = "jobInfrastructureType"
    return {**own, **other} if other.get(of_type, own.get(of_type)) == own.get(of_type) else other


def _log_details(call: ApiCall, logging: Json | None, run: Json) -> Json:
    """The log of a run's lines: the one that the settings name, or a new one in the group."""
    if not logging or not logging.get("enableLogging"):
        return {}
    group, log = logging["logGroupId"], logging.get("logId")
    if not log and logging.get("enableAutoLogCreation"):
        log, moment = new_ocid("log", tenancy.REGION_KEY), http.format_rfc3339(http.current_moment())
        within = call.store.get(group)
        compartment = within.compartment if within else run["compartmentId"]
        body = {
            **LOG.defaults,
            "id": log,
            "logGroupId": group,
            "displayName": run["id"],
            "logType": "CUSTOM",
            "timeCreated": moment,
            "timeLastModified": moment,
            "compartmentId": compartment,
            "freeformTags": {},
            "definedTags": {},
        }
        call.store.add(StoredResource(log, LOG.name, compartment, run["id"], "ACTIVE", body, parent=group))
    return {"logDetails": {"logGroupId": group, "logId": log}} if log else {}


def _require_ended(call: ApiCall, run: StoredResource) -> None:
    if run.state in ocids.RUN_ACTIVE:
        raise incorrect_state(f"The job run {run.id} is {run.state}: cancel it first")
    forget_folder(call, run)


JOB_RUN = ResourceKind(
    "job-run", "JobRun", SERVICE, f"{VERSION}/jobRuns", "jobRunId", ocids.JOB_RUN,
    ocid="datasciencejobrun", parent_field="jobId", summary="JobRunSummary",
    references={"projectId": "project", "jobId": "job"},
    on_create=_complete_run, on_delete=_require_ended,
    after_create=lambda call, run: call.after_commit.append(lambda: call.cloud.hosts.submit(run.id)),
)  # fmt: skip


def cancel_run(call: ApiCall) -> Reply:
    run = kinds.find_living(JOB_RUN, call)
    run.require_etag(call.if_match)
    if run.state not in ocids.RUN_ACTIVE:
        raise incorrect_state(f"The job run {run.id} is {run.state} already")
    if run.state != "CANCELING":
        call.store.put(run, state="CANCELING")
        call.after_commit.append(lambda: call.cloud.hosts.cancel(run.id))
    return Reply(204)
