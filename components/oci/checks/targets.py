# SPDX-License-Identifier: Apache-2.0
"""Checks of compute targets, and of the jobs that name one."""

from __future__ import annotations

from collections.abc import Iterator

from components.oci.checks.registry import rule
from components.oci.stack import ComputeTarget, OciJob, OciStack, is_flexible, share_of
from schemas.checks.registry import Wrong, at
from schemas.facts import Facts
from schemas.names import plural, suggestion


def _jobs(stack: OciStack) -> Iterator[tuple[str, OciJob, str]]:
    for name, job in stack.jobs.items():
        if job.compute_target is not None:
            yield name, job, job.compute_target


@rule("TY832", "a compute target that the stack does not have")
def unknown(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job, target in _jobs(stack):
        if target not in stack.compute_targets:
            message = f"`{target}` is not one of `trainyard:computeTargets`"
            remedy = f"add it there: `{target}: {{ shape: {job.shape.name} }}`, or `{target}: {{ existing: OCID }}`"
            if stack.compute_targets:
                remedy = f"{suggestion(target, stack.compute_targets)}, or {remedy}"
            yield Wrong(at("jobs", name, "computeTarget"), message, remedy)


@rule("TY833", "a compute target that is neither made nor there, or both")
def made_or_there(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, target in stack.compute_targets.items():
        if target.shape is None and target.existing is None:
            message = "has neither the `shape` of its machines nor a target that exists"
            yield Wrong(at("computeTargets", name), message, "add `shape`, or `existing`")
        elif target.existing is not None and target != ComputeTarget(existing=target.existing):
            message = "names a target that exists: what is said of its machines has no effect"
            yield Wrong(at("computeTargets", name, "existing"), message, "remove the other keys, or `existing`")


@rule("TY834", "nodes on a compute target without a subnet in common")
def without_subnet(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job, _target in _jobs(stack):
        if not job.joins_subnet and job.nodes > 1:
            message = (
                f"each of its {job.nodes} nodes is a job run of its own, and OCI's API takes no subnet for a job run "
                "on a compute target: they would not be in the stack's network, and may never meet"
            )
            remedy = "write `layout: node-groups`, whose nodes share the job's subnet; or use one node"
            yield Wrong(at("jobs", name, "computeTarget"), message, remedy)


@rule("TY835", "a job that does not fit its compute target")
def too_large(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    for name, job, key in _jobs(stack):
        target, path = stack.compute_targets.get(key), at("jobs", name, "shape")
        wanted = share_of(job.shape, facts.shapes)
        if wanted is None and not is_flexible(job.shape):
            message = f"a job asks a compute target for a size, and the catalog does not know that of {job.shape.name}"
            yield Wrong(path, message, f"write `shape: {{ name: {job.shape.name}, ocpus: 4, memoryGb: 64 }}`")
        if wanted is None or target is None or target.shape is None or target.existing is not None:
            continue
        machines = f"{plural(target.instances, 'machine')} of {target.shape.name}"
        if job.shape.name != target.shape.name:
            message = f"asks for {job.shape.name}, but `{key}` has {machines}"
            yield Wrong(path, message, f"use {target.shape.name}, or another target")
        elif (machine := share_of(target.shape, facts.shapes)) is not None:
            # The nodes of one run train together. Several runs can wait for each other.
            room = wanted.times_in(machine) * target.instances
            if room < job.nodes:
                message = f"a run has {plural(job.nodes, 'node')} of this size, but `{key}` holds {room}: {machines}"
                remedy = f"give `{key}` more `instances`, or let a node ask for less: `ocpus` and `memoryGb`"
                yield Wrong(path, message, remedy)


@rule("TY836", "a setting that jobs on compute targets do not have")
def without_effect(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    default = OciJob.__dataclass_fields__["block_storage_gb"].default
    for name, job, target in _jobs(stack):
        if job.block_storage_gb != default:
            message = "jobs on compute targets have no block storage of their own: nodes use the machines' boot volumes"
            remedy = f"remove it, and write `bootVolumeGb` of `{target}`"
            yield Wrong(at("jobs", name, "blockStorageGb"), message, remedy)
        if job.capacity_reservation:
            message = (
                "the machines of a compute target are reserved with the target, which Oracle's Pulumi provider cannot "
                "write yet"
            )
            remedy = "remove it; make the target with its reservation in the console, and name it with `existing`"
            yield Wrong(at("jobs", name, "capacityReservation"), message, remedy)


@rule("TY837", "a job on a compute target", severity="note")
def undocumented(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, _job, _target in _jobs(stack):
        message = (
            "OCI's API and Oracle's provider take compute targets for jobs; Oracle's pages describe them for model "
            "deployments only"
        )
        remedy = "try it in your tenancy first: docs/production.md lists what only a real tenancy can show"
        yield Wrong(at("jobs", name, "computeTarget"), message, remedy)


@rule("TY848", "a compute target that no job uses", severity="warning")
def unused(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    used = {target for _, _, target in _jobs(stack)}
    for name, target in stack.compute_targets.items():
        if target.existing is None and name not in used:
            message = "no job names it, and OCI charges for its machines while it exists"
            yield Wrong(at("computeTargets", name), message, f"write `computeTarget: {name}` in a job, or remove it")
