# SPDX-License-Identifier: Apache-2.0
"""Projects, jobs with their one artifact, notebook sessions, and compute targets."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Sequence

from catalog.tables import table
from localcloud.oci import kinds, limits, ocids, tenancy
from localcloud.oci.authorization import names_of
from localcloud.oci.kinds import ResourceKind, WorkRequestNames
from localcloud.oci.oci_errors import conflict_error, incorrect_state, missing_parameter, related_not_found
from localcloud.oci.operations import ApiCall
from localcloud.oci.paging import plain_page
from localcloud.oci.tenancy_store import StoredResource
from localcloud.server import http
from localcloud.server.api_errors import ApiError, invalid_parameter
from localcloud.server.http import FilePart, Json, Reply

SERVICE = "data_science"
VERSION = "/20190101"
_GROUPS = "jobNodeGroupConfigurationDetailsList"
_DIRECTORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_MOST_MOUNTS = 5
_MOST_ENVIRONMENT = 20_000
_MOST_ARGUMENTS = 4_000
_FILENAME = re.compile(r"""filename\*?=(?:"([^"]+)"|([^;\s]+))""")
# The smallest size of a flexible shape. The catalog has no sizes for them, because users choose them.
_LEAST = {"vcpus": 2, "memory_gib": 1}
_SERIES = (("GPU", "NVIDIA_GPU"), ("Standard.E", "AMD_ROME"), ("Standard.A", "ARM"), ("", "INTEL_SKYLAKE"))


def _require_empty_project(call: ApiCall, project: StoredResource) -> None:
    if held := call.store.live("job", parent=project.id):
        raise conflict_error(f"The project {project.id} still has {len(held)} job(s): {names_of(call, held)}")
    if notebooks := call.store.live("notebook-session", parent=project.id):
        raise conflict_error(f"The project {project.id} still has {len(notebooks)} notebook session(s)")


def _complete_job(call: ApiCall, body: Json) -> Json:
    require_network(call, subnet_of_nodes(body.get("jobInfrastructureConfigurationDetails"), _node_layout(body)))
    require_targets(call, body.get("jobInfrastructureConfigurationDetails"), _node_layout(body))
    require_logging(call, body.get("jobLogConfigurationDetails"))
    require_configurations(body.get("jobConfigurationDetails"), _node_layout(body))
    require_mounts(body.get("jobStorageMountConfigurationDetailsList"))
    for name in ("jobConfigurationDetails", "jobInfrastructureConfigurationDetails"):
        if name not in body and not body.get("jobNodeConfigurationDetails"):
            raise ApiError(400, "MissingParameter", f"{name} is required")
    container = body.get("jobEnvironmentConfigurationDetails") or body.get("jobNodeConfigurationDetails")
    return {**body, "lifecycleState": "ACTIVE" if container else "CREATING"}


def _updated_job(call: ApiCall, job: StoredResource, body: Json) -> Json:
    require_mounts(body.get("jobStorageMountConfigurationDetailsList"))
    require_network(call, subnet_of_nodes(body.get("jobInfrastructureConfigurationDetails"), _node_layout(body)))
    require_targets(call, body.get("jobInfrastructureConfigurationDetails"), _node_layout(body))
    return body


def _node_layout(body: Json) -> Json | None:
    return body.get("jobNodeConfigurationDetails")


def _delete_runs(call: ApiCall, job: StoredResource) -> None:
    runs = call.store.live("job-run", parent=job.id)
    if runs and call.query.get("deleteRelatedJobRuns", "").lower() != "true":
        raise conflict_error(f"The job {job.id} has {len(runs)} job run(s): delete them, or set deleteRelatedJobRuns")
    if active := [run for run in runs if run.state in ocids.RUN_ACTIVE]:
        raise incorrect_state(f"The job run {active[0].id} is {active[0].state}: cancel it first")
    for run in runs:
        call.store.put(run, state="DELETED", live=False)
        forget_folder(call, run)
    if artifact := job.body.get("artifact"):
        path = call.cloud.home / "artifacts" / artifact["file"]
        call.after_commit.append(lambda: path.unlink(missing_ok=True))


def forget_folder(call: ApiCall, run: StoredResource) -> None:
    """Deletes the files of a deleted run's nodes, after the commit."""
    folder = call.cloud.home / "runs" / run.id
    call.after_commit.append(lambda: shutil.rmtree(folder, ignore_errors=True))


PROJECT = ResourceKind(
    "project", "Project", SERVICE, f"{VERSION}/projects", "projectId", ocids.PROJECT,
    ocid="datascienceproject", summary="ProjectSummary", on_delete=_require_empty_project,
    work_requests=WorkRequestNames("project", "PROJECT_{verb}"), asynchronous=frozenset({"Delete"}),
)  # fmt: skip
JOB = ResourceKind(
    "job", "Job", SERVICE, f"{VERSION}/jobs", "jobId", ocids.JOB,
    ocid="datasciencejob", parent_field="projectId", summary="JobSummary", references={"projectId": "project"},
    on_create=_complete_job, on_update=_updated_job, on_delete=_delete_runs,
    work_requests=WorkRequestNames("job", "JOB_{verb}"), asynchronous=frozenset({"Delete"}),
)  # fmt: skip


def subnet_of_nodes(infrastructure: Json | None, layout: Json | None) -> str:
    """The subnet of all nodes. Node groups name it in their network, other jobs next to their shape."""
    network, groups = ((layout or {}).get(name) for name in ("jobNetworkConfiguration", _GROUPS))
    inner = (group.get("jobInfrastructureConfigurationDetails") for group in groups or [])
    return next((each["subnetId"] for each in (network, infrastructure, *inner) if each and each.get("subnetId")), "")


def require_network(call: ApiCall, subnet: str) -> None:
    if subnet:
        kinds.require_references(call, {"subnetId": "subnet"}, {"subnetId": subnet})


def require_targets(call: ApiCall, infrastructure: Json | None, layout: Json | None) -> None:
    """Raises unless all compute targets that a job or a run names exist."""
    groups = (layout or {}).get(_GROUPS) or []
    for each in (infrastructure, *(group.get("jobInfrastructureConfigurationDetails") for group in groups)):
        kinds.require_references(call, {"computeTargetId": "compute-target"}, each or {})


def require_logging(call: ApiCall, logging: Json | None) -> None:
    """Raises unless the log group and log of the settings exist, and the log is in the group."""
    if not logging or logging.get("enableLogging") is False:
        return
    if logging.get("enableLogging") and not logging.get("logGroupId"):
        raise invalid_parameter("logGroupId is required when logging is enabled")
    kinds.require_references(call, {"logGroupId": "log-group", "logId": "log"}, logging)
    log = call.store.get(logging["logId"]) if logging.get("logId") else None
    if log and log.parent != logging.get("logGroupId"):
        raise related_not_found(f"logId {log.id} in the log group {logging.get('logGroupId')}")


def require_configurations(configuration: Json | None, layout: Json | None) -> None:
    """Raises if the environment or the arguments are longer than OCI allows, in a job, a run or a node group."""
    groups = (layout or {}).get(_GROUPS) or []
    for one in (configuration, *(group.get("jobConfigurationDetails") for group in groups)):
        variables = (one or {}).get("environmentVariables") or {}
        if sum(len(name) + len(value) for name, value in variables.items()) > _MOST_ENVIRONMENT:
            raise invalid_parameter(
                f"environmentVariables have more than {_MOST_ENVIRONMENT} characters, names and values together"
            )
        if len((one or {}).get("commandLineArguments") or "") > _MOST_ARGUMENTS:
            raise invalid_parameter(f"commandLineArguments have more than {_MOST_ARGUMENTS} characters")


def require_mounts(mounts: Sequence[Json] | None) -> None:
    """Raises if OCI would refuse the mounts: a folder name with other characters, or two with the same destination."""
    places = [(row.get("destinationPath") or "/mnt", row["destinationDirectoryName"]) for row in mounts or ()]
    for _, name in places:
        if not _DIRECTORY.fullmatch(name):
            raise invalid_parameter(
                f"destinationDirectoryName {name!r} may only have letters, digits, - and _; its parent folder belongs"
                " into destinationPath"
            )
    if len(places) > _MOST_MOUNTS:
        raise invalid_parameter(f"there are {len(places)} storage mounts; at most {_MOST_MOUNTS} are allowed")
    if len(set(places)) < len(places):
        raise invalid_parameter("two storage mounts have the same destination")


def put_artifact(call: ApiCall) -> Reply:
    job = kinds.find_living(JOB, call)
    upload = call.input.upload
    if upload is None or not upload.size:
        raise invalid_parameter("the artifact is empty")
    if job.body.get("artifact"):
        raise conflict_error(f"The job {job.id} has an artifact already, and it cannot be replaced: create another job")
    match = _FILENAME.search(call.headers.get("content-disposition", ""))
    name = (match[1] or match[2]) if match else "artifact"
    folder = call.cloud.home / "artifacts"
    folder.mkdir(exist_ok=True)
    artifact: Json = {
        "file": uuid.uuid4().hex, "name": name, "size": upload.size, "md5": upload.md5, "etag": uuid.uuid4().hex,
        "created": http.current_moment(),
    }  # fmt: skip
    upload.path.rename(folder / artifact["file"])
    call.store.put(job, body={**job.body, "artifact": artifact}, state="ACTIVE")
    return Reply(204, headers={"etag": artifact["etag"]})


def head_artifact(call: ApiCall) -> Reply:
    artifact = _require_artifact(call)
    return Reply(200, headers={**_artifact_headers(artifact), "content-length": str(artifact["size"])})


def get_artifact(call: ApiCall) -> Reply:
    artifact = _require_artifact(call)
    path = call.cloud.home / "artifacts" / artifact["file"]
    return Reply(200, headers=_artifact_headers(artifact), file=FilePart(path, 0, artifact["size"]))


def _require_artifact(call: ApiCall) -> Json:
    artifact = kinds.find_living(JOB, call).body.get("artifact")
    if not artifact:
        raise ApiError(404, "NotAuthorizedOrNotFound", "The job has no artifact")
    return dict(artifact)


def _artifact_headers(artifact: Json) -> dict[str, str]:
    return {
        "content-type": "application/octet-stream",
        "content-disposition": f'attachment; filename="{artifact["name"]}"',
        "content-md5": artifact["md5"],
        "etag": artifact["etag"],
        "last-modified": http.format_http_date(artifact["created"]),
    }


def _complete_notebook(call: ApiCall, body: Json) -> Json:
    settings = body.get("notebookSessionConfigDetails") or body.get("notebookSessionConfigurationDetails")
    if not settings:
        raise missing_parameter("notebookSessionConfigDetails")
    require_network(call, settings.get("subnetId") or "")
    limits.require_nodes(call, settings["shape"], 1)
    url = f"https://{body['id'].rsplit('.', 1)[-1]}.notebook.{tenancy.REGION}.oci.oraclecloud.com"
    return {**body, "notebookSessionConfigDetails": settings, "notebookSessionUrl": url}


NOTEBOOK = ResourceKind(
    "notebook-session", "NotebookSession", SERVICE, f"{VERSION}/notebookSessions", "notebookSessionId",
    ocids.JOB, ocid="datasciencenotebooksession", parent_field="projectId", summary="NotebookSessionSummary",
    references={"projectId": "project"}, on_create=_complete_notebook,
    work_requests=WorkRequestNames("notebook-session", "NOTEBOOK_SESSION_{verb}"),
    asynchronous=frozenset({"Create", "Delete"}),
)  # fmt: skip


def activate_notebook(call: ApiCall) -> Reply:
    return _change_notebook_state(call, "INACTIVE", "ACTIVE")


def deactivate_notebook(call: ApiCall) -> Reply:
    return _change_notebook_state(call, "ACTIVE", "INACTIVE")


def _change_notebook_state(call: ApiCall, before: str, after: str) -> Reply:
    notebook = kinds.find_living(NOTEBOOK, call)
    notebook.require_etag(call.if_match)
    if notebook.state != before:
        raise incorrect_state(f"The notebook session {notebook.id} is {notebook.state}")
    call.store.put(notebook, state=after)
    return Reply(202)


def list_shapes(call: ApiCall) -> Reply:
    call.needed("compartmentId")
    name = call.query.get("name")
    shapes = []
    for shape, row in table("shapes").items():
        if name not in (None, shape):
            continue
        size = {**_LEAST, **row}
        shapes.append(
            {
                "name": shape,
                "coreCount": size["vcpus"] // 2,
                "memoryInGBs": size["memory_gib"],
                "shapeSeries": next(series for part, series in _SERIES if part in shape),
            }
        )
    page, headers = plain_page(shapes, call.query)
    return Reply(200, page, headers)


# Compute targets: managed clusters that jobs may name. Here they change nothing about how a run is carried out.
_CONFIGURATION = "computeConfigurationDetails"
# The default of a target without a scaling policy. No document says what OCI's default is.
_ONE = {"policyType": "FIXED_SIZE", "instanceCount": 1}


def _created_target(call: ApiCall, body: Json) -> Json:
    configuration = {"scalingPolicy": _ONE, **body[_CONFIGURATION]}
    count = limits.machine_count(configuration)
    limits.require_nodes(call, configuration["instanceConfiguration"]["instanceShape"], count)
    return {**body, _CONFIGURATION: configuration, **_system_data(count)}


def _updated_target(call: ApiCall, target: StoredResource, body: Json) -> Json:
    """A change may leave out the machines or the scaling policy, which then stay as they are."""
    configuration = {**target.body[_CONFIGURATION], **body[_CONFIGURATION]}
    return {**body, _CONFIGURATION: configuration, **_system_data(limits.machine_count(configuration))}


def _system_data(count: int) -> Json:
    return {"computeTargetSystemData": {"computeType": "MANAGED_COMPUTE_CLUSTER", "currentInstanceCount": count}}


COMPUTE_TARGET = ResourceKind(
    "compute-target", "ComputeTarget", SERVICE, f"{VERSION}/computeTargets", "computeTargetId", ocids.JOB,
    ocid="datasciencecomputetarget", summary="ComputeTargetSummary", held_by=("job",),
    on_create=_created_target, on_update=_updated_target,
    work_requests=WorkRequestNames("compute-target", "COMPUTE_TARGET_{verb}"),
    asynchronous=frozenset({"Create", "Update", "Delete"}),
)  # fmt: skip
