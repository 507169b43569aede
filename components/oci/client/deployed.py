# SPDX-License-Identifier: Apache-2.0
"""The deployed job of a stack, and the newest start of the run that a try repeats. Both are found by their tags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from components.oci.client import job_runs
from components.oci.client.calls import call_oci, list_oci_pages, parse_bucket_folder
from components.oci.client.compartment_runs import CompartmentRuns
from components.oci.client.session import Session
from components.oci.plan import OciJobPlan, OciPlan, registry_host
from components.oci.resources.jobs import artifact_name
from components.plan.model import JobPlan, expand_references
from components.platform.calls import Call
from components.platform.runs import read_launch_document
from components.platform.tries import Overlay, PlannedTry, TryError, refuse_taken_name
from components.platform.values import Properties, Secret

# References of a plan that only OCI fills in, and OCIDs. On the local cloud, stand-ins have other OCIDs.
OPEN_TEXT = re.compile(r"\$\{[^}]*\}|ocid1\.[a-z0-9._-]+", re.IGNORECASE)


@dataclass(frozen=True)
class Deployed:
    """`like`: the inputs of the run that the try repeats. None if the job has no such run."""

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
        """The environment of a deployed node in plain text, as everybody who may read runs can see it."""
        values = node.get("environment") or {}
        return {name: value.value if isinstance(value, Secret) else value for name, value in values.items()}


def find_deployed_job(runs: CompartmentRuns, call: Call, planned: PlannedTry) -> Deployed:
    stack, name, compartment = planned.plan.stack, planned.job.name, runs.compartment
    client = runs.session.client("data_science")

    def list_page(**options: Any) -> Any:
        ask = partial(client.list_jobs, compartment, lifecycle_state="ACTIVE", **options)
        return call_oci(call, "List the jobs", ask)

    jobs = [job for job in list_oci_pages(list_page) if (job.freeform_tags or {}).get("stack") == stack]
    own = [job for job in jobs if job.freeform_tags.get("job") == name]
    if not jobs:
        raise TryError(f"nothing of the stack {stack} is deployed in {compartment}")
    if not own:
        deployed = sorted({job.freeform_tags.get("job", "") for job in jobs})
        raise TryError(f"the job {name} is not deployed in {compartment}; of {stack} are: {', '.join(deployed)}")
    # While a job is replaced, there are two of it.
    newest = max(own, key=lambda job: job.time_created)
    job = call_oci(call, "Read the job", lambda: client.get_job(newest.id)).data
    past = list(runs.runs_of_job(call, compartment, job.id, 0))
    refuse_taken_name(planned, ((run.freeform_tags or {}).get("run") for run in past))
    main = _main_of_newest(past, planned.like.name) if planned.like else None
    described = runs.describe(call, main.id) if main is not None else None
    return Deployed(job, described[0] if described else None)


def _main_of_newest(past: list[Any], name: str) -> Any:
    """The job run of the main node of the newest start that the stack's state has. None if it has none."""
    starts: dict[str, list[Any]] = {}
    for run in past:
        tags = run.freeform_tags or {}
        if tags.get("run") == name and job_runs.RUN_TAG in tags and job_runs.is_like(tags) is None:
            starts.setdefault(tags[job_runs.RUN_TAG], []).append(run)
    if not starts:
        return None
    newest = max(starts.values(), key=lambda runs: max(run.time_accepted for run in runs))
    return min(newest, key=lambda run: job_runs.node_of(run.freeform_tags)[2])


def overlay_with_references(values: Mapping[str, str]) -> Overlay:
    return Overlay(OPEN_TEXT, lambda text: expand_references(text, values))


def reference_values(session: Session, call: Call, plan: OciPlan, deployed: Deployed) -> dict[str, str]:
    """The references that can be filled in without the stack's state."""
    client = session.client("object_storage")
    namespace = str(call_oci(call, "Read the namespace", lambda: client.get_namespace()).data)
    values = {"namespace": namespace}
    if "registry" not in plan.taken:
        values["registry"] = f"{registry_host(plan.region)}/{namespace}/{plan.registry.repository}"
    if "bucket" not in plan.taken:
        values["bucket"] = f"oci://{plan.bucket.name}@{namespace}"
    # Where the deployed run writes counts more than the stack's own bucket.
    nodes = (deployed.like or {}).get("nodes", ())
    folders = (parse_bucket_folder(read_launch_document(deployed.variables(node)).get("folder")) for node in nodes)
    if folder := next((folder for folder in folders if folder is not None), None):
        values["bucket"] = f"oci://{folder.bucket}@{folder.namespace}"
    return values


# It has no values, because it is only used to compare.
_OVERLAY = overlay_with_references({})
_FILE_NAME = re.compile(r'filename="?([^";]+)')


def changes_since_deployment(session: Session, planned: PlannedTry, deployed: Deployed, folder: Path) -> Iterator[str]:
    """The keys of the job that differ between the stack file and what is deployed, each once."""
    yield from dict.fromkeys(
        (*_changes_of_job(session, planned.job, deployed, folder), *_changes_of_run(planned, deployed))
    )


def _changes_of_job(session: Session, job: JobPlan, deployed: Deployed, folder: Path) -> Iterator[str]:
    if job.code and job.code.folder:
        name = _deployed_artifact(session, deployed.job.id)
        if name is not None and name != artifact_name((folder / job.code.folder).resolve(), job.called):
            yield "code"
    configuration, infrastructure, environment = _parts_of_job(deployed.job)
    image = (deployed.like or {}).get("image") or getattr(environment, "image", None)
    if not _OVERLAY.fits(job.image, image):
        yield "image"
    of_oci = job if isinstance(job, OciJobPlan) else None
    # The file does not have the OCID of a target that the stack makes.
    planned_target = of_oci.compute_target if of_oci else None
    if (planned_target is None) != (getattr(infrastructure, "compute_target_id", None) is None):
        yield "computeTarget"
    else:
        shape: tuple[Any, ...] = (job.shape.name, job.shape.ocpus, job.shape.memory_gb)
        if of_oci and planned_target and of_oci.share:
            shape = (of_oci.share.ocpus, of_oci.share.memory_gb, of_oci.share.gpus)
        if shape != _shape_of_infrastructure(infrastructure):
            yield "shape"
    if job.block_storage_gb != (getattr(infrastructure, "block_storage_size_in_gbs", None) or 0):
        yield "blockStorageGb"
    if deployed.like and (of_oci and of_oci.capacity_reservation) != deployed.like.get("capacityReservation"):
        yield "capacityReservation"
    minutes = (deployed.like or {}).get("maximumRuntimeMinutes")
    if job.maximum_runtime_minutes != (minutes or getattr(configuration, "maximum_runtime_in_minutes", None)):
        yield "maximumRuntimeMinutes"
    mounted = [
        (
            f"{(mount.destination_path or '').rstrip('/')}/{mount.destination_directory_name}",
            getattr(mount, "prefix", None) or "",
        )
        for mount in deployed.job.job_storage_mount_configuration_details_list or ()
    ]
    if mounted != [(item.mount.rstrip("/"), item.prefix) for item in job.inputs]:
        yield "inputs"


def _changes_of_run(planned: PlannedTry, deployed: Deployed) -> Iterator[str]:
    if planned.like is None or deployed.like is None:
        return
    like = {node.name: node for node in planned.like.nodes}
    nodes = deployed.like["nodes"]
    sizes = {node["name"]: node.get("replicas") or 1 for node in nodes}
    if sizes != {name: node.replicas for name, node in like.items()}:
        yield "roles"
    for node in nodes:
        if node["name"] in like:
            yield from _OVERLAY.differences(deployed.variables(node), like[node["name"]])


def _parts_of_job(job: Any) -> tuple[Any, Any, Any]:
    """Configuration, infrastructure and environment. All node groups of a job have the same."""
    groups = getattr(job.job_node_configuration_details, "job_node_group_configuration_details_list", None)
    if not groups:
        return (
            job.job_configuration_details,
            job.job_infrastructure_configuration_details,
            job.job_environment_configuration_details,
        )
    return (
        job.job_node_configuration_details,
        groups[0].job_infrastructure_configuration_details,
        groups[0].job_environment_configuration_details,
    )


def _shape_of_infrastructure(infrastructure: Any) -> tuple[Any, ...]:
    """The machine of a node, or its share of a compute target's machine."""
    if (asked := getattr(infrastructure, "resource_configuration", None)) is not None:
        share = asked.resource_request_configuration
        return share.ocpus, share.memory_in_gbs, share.gpus or 0
    size = getattr(infrastructure, "job_shape_config_details", None)
    return (
        getattr(infrastructure, "shape_name", None),
        getattr(size, "ocpus", None),
        getattr(size, "memory_in_gbs", None),
    )


def _deployed_artifact(session: Session, job: str) -> str | None:
    """The name of the deployed code. None if there is none, or if the caller may not see it."""
    try:
        headers: Mapping[str, str] = session.client("data_science").head_job_artifact(job).headers
    except Exception as error:
        if getattr(error, "status", None) is None:
            raise
        return None
    match = _FILE_NAME.search(headers.get("content-disposition", ""))
    return match[1] if match else None
