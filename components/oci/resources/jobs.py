# SPDX-License-Identifier: Apache-2.0
"""A job, its runs, and compute targets, which cost money until they are deleted.

The job has the settings that seldom change, and runs have the others. So a new argument replaces only a run.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import pulumi_oci as oci

from components.oci.plan import OciPlan
from components.oci.resources.context import Context
from components.oci.run_inputs import Where, job_tags, launch_tags, make_run_inputs
from components.oci.stack import MachineShare
from components.plan.model import JobPlan, RunPlan
from components.runs import Run, RunProvider, old_run_names
from schemas.job_code import CodeArtifact, folder_digest, folder_entries

# The only existing type of targets, and of jobs on them.
MANAGED = "MANAGED_COMPUTE_CLUSTER"
# Every run sets these itself. If the job's values changed, the job would be replaced, and the history of its runs
# deleted.
RUNS_SAY = ["jobConfigurationDetails.maximumRuntimeInMinutes", "jobEnvironmentConfigurationDetails.image"]
# Part of the digest: an archive in another format must get another name.
FORMAT = b"zip, not compressed"
# The oldest time in a zip. With real times, every checkout would be another artifact.
EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class JobPlace:
    """Properties that jobs need from other components or from another stack."""

    project: pulumi.Input[str]
    subnet: pulumi.Input[str]
    log_group: pulumi.Input[str] | None
    log: pulumi.Input[str] | None
    # By keys of the stack file.
    compute_targets: Mapping[str, pulumi.Input[str]]


@dataclass(frozen=True)
class JobArgs:
    plan: JobPlan
    context: Context
    place: JobPlace
    artifact: CodeArtifact | None
    runs: RunProvider
    # Dependencies without a property: the access that runs need, and the bucket in which nodes exchange addresses.
    after: tuple[pulumi.Resource, ...]


class Job(pulumi.ComponentResource):
    """One job with its runs. Runs are keyed by name, so removing one does not affect the others."""

    job_id: pulumi.Output[str]
    runs: Mapping[str, Run]

    def __init__(self, name: str, args: JobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        # A renamed job keeps its state. Pulumi applies the alias to the resources below it too.
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=old_run_names(args.plan.was)))
        super().__init__("trainyard:oci:Job", name, None, opts)
        self._args = args
        self._image = args.context.fill(args.plan.image)
        groups = args.plan.layout == "node-groups"
        self.job_id = oci.datascience.Job(
            # Ignored properties of one layout do not exist in the other, so the layouts are two resources.
            f"{name}/groups" if groups else name,
            compartment_id=args.context.plan.compartment,
            project_id=args.place.project,
            display_name=args.plan.display_name,
            delete_related_job_runs=True,
            freeform_tags=job_tags(args.context.plan, args.plan) | launch_tags(args.plan),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=args.after,
                # Users start runs of a job without runs in the file, so the job itself must have the file's values.
                ignore_changes=RUNS_SAY if args.plan.runs and not groups else None,
            ),
            **(self._node_groups() if groups else self._single_nodes()),
            **self._common(),
        ).id
        self.runs = {key: self._run(key, run) for key, run in args.plan.runs.items()}
        self.register_outputs({"job_id": self.job_id})

    def _common(self) -> dict[str, Any]:
        plan, place, artifact = self._args.plan, self._args.place, self._args.artifact
        settings: dict[str, Any] = {}
        if place.log_group is not None:
            settings["job_log_configuration_details"] = {
                "enable_logging": True,
                "enable_auto_log_creation": False,
                "log_group_id": place.log_group,
                "log_id": place.log,
            }
        if artifact is not None:
            settings |= {
                "job_artifact": str(artifact.path),
                "artifact_content_length": str(artifact.size),
                "artifact_content_disposition": f"attachment; filename={artifact.file_name}",
            }
        if plan.inputs:
            settings["job_storage_mount_configuration_details_lists"] = [
                {
                    "storage_type": "OBJECT_STORAGE",
                    **_mounted_at(item.mount),
                    "bucket": item.bucket or self._args.context.bucket,
                    "namespace": self._args.context.namespace,
                    "prefix": item.prefix,
                }
                for item in plan.inputs
            ]
        return settings

    def _single_nodes(self) -> dict[str, Any]:
        return {
            "job_configuration_details": self._configuration(),
            "job_infrastructure_configuration_details": self._infrastructure(subnet=True),
            "job_environment_configuration_details": self._environment(),
        }

    def _node_groups(self) -> dict[str, Any]:
        plan = self._args.plan
        groups = [
            {
                "name": role.called,
                "replicas": role.replicas,
                "minimum_success_replicas": role.minimum_success,
                "job_configuration_details": self._configuration(),
                "job_infrastructure_configuration_details": self._infrastructure(subnet=False),
                "job_environment_configuration_details": self._environment(),
            }
            for role in plan.roles
        ]
        return {
            "job_node_configuration_details": {
                "job_node_type": "MULTI_NODE",
                "startup_order": "IN_ORDER",
                "maximum_runtime_in_minutes": str(plan.maximum_runtime_minutes),
                "job_network_configuration": {
                    "job_network_type": "CUSTOM_NETWORK",
                    "subnet_id": self._args.place.subnet,
                },
                "job_node_group_configuration_details_lists": groups,
            }
        }

    def _configuration(self) -> dict[str, Any]:
        return {"job_type": "DEFAULT", "maximum_runtime_in_minutes": str(self._args.plan.maximum_runtime_minutes)}

    def _infrastructure(self, subnet: bool) -> dict[str, Any]:
        plan = self._args.plan
        own = self._args.context.plan.jobs[plan.name]
        if own.compute_target and own.share:
            return self._on_target(own.compute_target, own.share)
        settings: dict[str, Any] = {
            "job_infrastructure_type": "STANDALONE" if subnet else "MULTI_NODE",
            "shape_name": plan.shape.name,
            "block_storage_size_in_gbs": plan.block_storage_gb,
        }
        if subnet:
            settings["subnet_id"] = self._args.place.subnet
        if plan.shape.ocpus is not None:
            settings["job_shape_config_details"] = {"ocpus": plan.shape.ocpus, "memory_in_gbs": plan.shape.memory_gb}
        return settings

    def _on_target(self, target: str, share: MachineShare) -> dict[str, Any]:
        """Settings for a compute target, for one node or a node group: there is no shape, disk or subnet."""
        settings = {"ocpus": share.ocpus, "memory_in_gbs": share.memory_gb} | (
            {"gpus": share.gpus} if share.gpus else {}
        )
        return {
            "job_infrastructure_type": MANAGED,
            "compute_target_id": self._args.place.compute_targets[target],
            "resource_configuration": {"resource_request_configuration": settings},
        }

    def _environment(self) -> dict[str, Any]:
        return {"job_environment_type": "OCIR_CONTAINER", "image": self._image}

    def _run(self, key: str, run: RunPlan) -> Run:
        args = self._args
        where = Where(self.job_id, args.place.project, self._image, args.place.log_group, args.place.log)
        inputs = make_run_inputs(args.context.plan, args.plan, run, where, args.context)
        # Keys have no slash, so the names of jobs and runs are never equal.
        named = f"{args.plan.name}/{key}"
        options = pulumi.ResourceOptions(
            parent=self,
            provider=args.runs,
            depends_on=args.after,
            # The provider asks for this order too, but the engine does not consult it for --replace.
            delete_before_replace=True,
            aliases=old_run_names(tuple(f"{args.plan.name}/{name}" for name in run.was)),
        )
        return Run(named, inputs, options)


def _mounted_at(mount: str) -> dict[str, str]:
    """The path and the name of a mounted folder, which OCI has separately. Without a path, it would be in /mnt."""
    path, _, name = mount.rstrip("/").rpartition("/")
    return {"destination_path": path or "/", "destination_directory_name": name}


def build_artifact(folder: Path, into: Path, name: str) -> CodeArtifact:
    """Writes the archive below `into`. Its name has its digest, so that new code is a new path, which replaces the
    job."""
    digest = folder_digest(folder, FORMAT)
    into.mkdir(parents=True, exist_ok=True)
    target = into / _file_name(name, digest)
    if not target.exists():
        entries = folder_entries(folder)
        unfinished = target.with_suffix(f".{os.getpid()}.tmp")
        # Without compression: versions of zlib give different bytes, and the length is part of the job.
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as archive:
            for inside, path in entries:
                info = zipfile.ZipInfo(inside, EPOCH)
                info.external_attr = (0o755 if os.access(path, os.X_OK) else 0o644) << 16
                archive.writestr(info, path.read_bytes())
        unfinished.replace(target)
    return CodeArtifact(target, digest, target.stat().st_size)


def artifact_name(folder: Path, name: str) -> str:
    """The name of this folder's archive. If a deployed job's artifact has another name, the code has changed."""
    return _file_name(name, folder_digest(folder, FORMAT))


def _file_name(name: str, digest: str) -> str:
    return f"{name}-{digest[:16]}.zip"


def compute_targets(plan: OciPlan) -> dict[str, pulumi.Input[str]]:
    """The OCID of each compute target, by its key in the stack file."""
    ocids: dict[str, pulumi.Input[str]] = {}
    for key, target in plan.compute_targets.items():
        if target.existing:
            ocids[key] = target.existing
            continue
        shape = target.shape
        if shape is None:
            raise ValueError(f"{target.name} is not made")
        machine: dict[str, Any] = {"instance_shape": shape.name}
        if shape.ocpus is not None:
            machine["instance_shape_details"] = {"ocpus": shape.ocpus, "memory_in_gbs": shape.memory_gb}
        if target.boot_volume_gb is not None:
            machine["boot_volume_size_in_gbs"] = target.boot_volume_gb
        ocids[key] = oci.datascience.ComputeTarget(
            f"target-{key}",
            compartment_id=plan.compartment,
            display_name=target.name,
            description=f"Machines for the training of {plan.team}, {plan.environment}",
            compute_configuration_details={
                "compute_type": MANAGED,
                "instance_configuration": machine,
                "scaling_policy": {"policy_type": "FIXED_SIZE", "instance_count": target.instances},
            },
            freeform_tags=dict(plan.tags),
        ).id
    return ocids
