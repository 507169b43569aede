# SPDX-License-Identifier: Apache-2.0
"""What the stack file says otherwise than what is deployed, as far as the job's runs depend on it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from components.oci.artifact import artifact_name
from components.oci.client.deployed import Deployed
from components.oci.client.filling import overlay_with
from components.oci.client.session import Session
from components.oci.plan import OciJobPlan
from components.plan.model import JobPlan
from components.platform.tries import PlannedTry

# It only compares.
_OVERLAY = overlay_with({})
_FILE_NAME = re.compile(r'filename="?([^";]+)')


def changes_of(session: Session, planned: PlannedTry, deployed: Deployed, folder: Path) -> Iterator[str]:
    """Keys of the job in the stack file, each once."""
    yield from dict.fromkeys((*_of_job(session, planned.job, deployed, folder), *_of_run(planned, deployed)))


def _of_job(session: Session, job: JobPlan, deployed: Deployed, folder: Path) -> Iterator[str]:
    if job.code and job.code.folder:
        name = _artifact(session, deployed.job.id)
        if name is not None and name != artifact_name((folder / job.code.folder).resolve(), job.called):
            yield "code"
    configuration, infrastructure, environment = _parts(deployed.job)
    image = (deployed.like or {}).get("image") or getattr(environment, "image", None)
    if not _OVERLAY.fits(job.image, image):
        yield "image"
    if (_target(job) is None) != (getattr(infrastructure, "compute_target_id", None) is None):
        yield "computeTarget"
    elif _shape(job) != _shape_of(infrastructure):
        yield "shape"
    if job.block_storage_gb != (getattr(infrastructure, "block_storage_size_in_gbs", None) or 0):
        yield "blockStorageGb"
    if deployed.like and _reservation(job) != deployed.like.get("capacityReservation"):
        yield "capacityReservation"
    minutes = (deployed.like or {}).get("maximumRuntimeMinutes")
    if job.maximum_runtime_minutes != (minutes or getattr(configuration, "maximum_runtime_in_minutes", None)):
        yield "maximumRuntimeMinutes"
    if [_mounted(mount) for mount in deployed.job.job_storage_mount_configuration_details_list or ()] != [
        (item.mount.rstrip("/"), item.prefix) for item in job.inputs
    ]:
        yield "inputs"


def _of_run(planned: PlannedTry, deployed: Deployed) -> Iterator[str]:
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


def _parts(job: Any) -> tuple[Any, Any, Any]:
    """Configuration, infrastructure and environment. In node groups all groups have the same."""
    groups = getattr(job.job_node_configuration_details, "job_node_group_configuration_details_list", None)
    if not groups:
        return (
            job.job_configuration_details,
            job.job_infrastructure_configuration_details,
            job.job_environment_configuration_details,
        )
    one = groups[0]
    return (
        job.job_node_configuration_details,
        one.job_infrastructure_configuration_details,
        one.job_environment_configuration_details,
    )


def _shape(job: JobPlan) -> tuple[Any, ...]:
    if isinstance(job, OciJobPlan) and job.compute_target and job.share:
        return job.share.ocpus, job.share.memory_gb, job.share.gpus
    return job.shape.name, job.shape.ocpus, job.shape.memory_gb


def _shape_of(infrastructure: Any) -> tuple[Any, ...]:
    """The machine of a node, or what it asks of one of a compute target."""
    if (asked := getattr(infrastructure, "resource_configuration", None)) is not None:
        share = asked.resource_request_configuration
        return share.ocpus, share.memory_in_gbs, share.gpus or 0
    size = getattr(infrastructure, "job_shape_config_details", None)
    return (
        getattr(infrastructure, "shape_name", None),
        getattr(size, "ocpus", None),
        getattr(size, "memory_in_gbs", None),
    )


def _target(job: JobPlan) -> str | None:
    """The key of its compute target. Which one that is, the file does not say of a target that the stack makes."""
    return job.compute_target if isinstance(job, OciJobPlan) else None


def _reservation(job: JobPlan) -> str | None:
    return job.capacity_reservation if isinstance(job, OciJobPlan) else None


def _mounted(mount: Any) -> tuple[str, str]:
    path = (mount.destination_path or "").rstrip("/")
    return f"{path}/{mount.destination_directory_name}", getattr(mount, "prefix", None) or ""


def _artifact(session: Session, job: str) -> str | None:
    """The name of the deployed code. None if it has none, or if the caller may not see it."""
    try:
        headers: Mapping[str, str] = session.client("data_science").head_job_artifact(job).headers
    except Exception as error:
        if getattr(error, "status", None) is None:
            raise
        return None
    match = _FILE_NAME.search(headers.get("content-disposition", ""))
    return match[1] if match else None
