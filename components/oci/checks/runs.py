# SPDX-License-Identifier: Apache-2.0
"""Checks of machines, disks, mounts and times against what OCI offers, and of compute targets with the jobs that name
one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from components.oci.stack import ComputeTarget, OciJob, OciStack, is_flexible, rule, share_of
from schemas.checks.image_checks import OURS, image_path, images_of
from schemas.checks.run_checks import disks_within, runtimes_within
from schemas.each import MOST_RUNS, live_at_once
from schemas.facts import Facts
from schemas.findings import Path, Wrong, at
from schemas.model import EnvValue, Shape
from schemas.name_suggestions import count_noun, suggest_name

SHORTEST, LONGEST = 10, 30 * 24 * 60
SMALLEST_DISK, LARGEST_DISK = 50, 10_240
MOST_MOUNTS = 5
# docs.oracle.com/iaas/Content/data-science/using/bring-your-own-reservations.htm, although the API's model of node
# groups has a field for them.
_RESERVATIONS = '"BYOR doesn\'t support Pipelines or multi-node Job Runs" (Oracle, Bring Your Own Reservations)'
_MOUNTED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
# The limit for all variables of a run, names and values together. Trainyard's own take up to a few thousand.
MOST_CHARACTERS = 20_000
OUR_CHARACTERS = 3_000
_OCIR = re.compile(r"(?P<key>[a-z0-9-]+)\.ocir\.io|ocir\.(?P<region>[a-z0-9-]+)\.oci\.[a-z0-9.-]+")


@rule("TY801", "a maximum runtime that OCI does not allow")
def refused_maximum_runtime(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    return runtimes_within(stack, SHORTEST, LONGEST, "OCI takes")


@rule("TY803", "a size of block storage that OCI does not offer")
def refused_block_storage(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    return disks_within(stack, SMALLEST_DISK, LARGEST_DISK)


def _shapes_of_stack(stack: OciStack) -> Iterator[tuple[Path, Shape, bool]]:
    """Every shape, and whether it describes a whole machine. On a compute target, a node may ask for a part of one."""
    for name, job in stack.jobs.items():
        yield at("jobs", name, "shape"), job.shape, job.compute_target is None
    for name, target in stack.compute_targets.items():
        if target.shape is not None:
            yield at("computeTargets", name, "shape"), target.shape, True


@rule("TY811", "an unknown shape", severity="warning")
def unknown_shape(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    for path, shape, _ in _shapes_of_stack(stack):
        if shape.name not in facts.shapes:
            remedy = suggest_name(shape.name, facts.shapes)
            if not remedy.startswith("did"):
                remedy = "check its name; a new shape works although it is not listed"
            yield Wrong(path, f"`{shape.name}` is not in the catalog of shapes", remedy)


@rule("TY812", "a flexible shape without its size")
def flexible_shape_without_size(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for path, shape, _is_whole in _shapes_of_stack(stack):
        if is_flexible(shape) and (shape.ocpus is None or shape.memory_gb is None):
            message = f"{shape.name} is flexible: it needs `ocpus` and `memoryGb`"
            remedy = f"write `shape: {{ name: {shape.name}, ocpus: 4, memoryGb: 64 }}`"
            yield Wrong(path, message, remedy)


@rule("TY813", "a fixed shape with a size")
def fixed_shape_with_size(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    for path, shape, is_whole in _shapes_of_stack(stack):
        is_fixed = shape.name in facts.shapes and not facts.shapes[shape.name].get("flex")
        if is_whole and is_fixed and (shape.ocpus is not None or shape.memory_gb is not None):
            message = f"{shape.name} has a fixed size: `ocpus` and `memoryGb` have no effect"
            yield Wrong(path, message, f"write `shape: {shape.name}`")


@rule("TY814", "too little or too much memory for the OCPUs")
def refused_memory(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for path, shape, is_whole in _shapes_of_stack(stack):
        ocpus, gigabytes = shape.ocpus, shape.memory_gb
        if is_whole and ocpus and gigabytes and not ocpus <= gigabytes <= 64 * ocpus:
            message = f"{gigabytes:g} GB do not fit {ocpus:g} OCPUs; OCI offers 1 to 64 GB for each"
            remedy = f"use {ocpus:g} to {64 * ocpus:g} GB"
            yield Wrong((*path, "memoryGb"), message, remedy)


@rule("TY816", "more mounts than OCI allows")
def too_many_mounts(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if len(job.inputs) > MOST_MOUNTS:
            message = f"there are {len(job.inputs)} inputs; a job can mount {MOST_MOUNTS}"
            yield Wrong(at("jobs", name, "inputs"), message, "read several prefixes through one mount")


@rule("TY826", "a mount name that OCI does not allow")
def mount_name(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for index, item in enumerate(job.inputs):
            if not _MOUNTED.fullmatch(item.mount.rstrip("/").rpartition("/")[2]):
                message = f"`{item.mount}` ends in a name that OCI does not allow"
                remedy = "use letters, digits, `-` and `_`, beginning with a letter or digit"
                yield Wrong(at("jobs", name, "inputs", index, "mount"), message, remedy)


@rule("TY829", "a capacity reservation for node groups")
def reservation_of_groups(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.capacity_reservation and job.layout == "node-groups":
            message = f"OCI takes reservations for job runs of one node: {_RESERVATIONS}"
            remedy = "remove `layout: node-groups`, so that each node is a job run of its own; or the reservation"
            yield Wrong(at("jobs", name, "capacityReservation"), message, remedy)


@rule("TY866", "runs that take many machines at once", severity="note")
def machines_at_once(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for run, one in job.runs.items():
            if 1 < live_at_once(one) <= MOST_RUNS:
                together = live_at_once(one)
                nodes = count_noun(together * job.nodes, "node")
                message = (
                    f"makes {count_noun(together, 'run')} that start together: {nodes} of {job.shape.name} at once"
                )
                remedy = (
                    "compare with the account's limit for this shape (Console: Governance, Limits, Quotas and Usage; "
                    "`oci limits value list --service-name data-science --compartment-id TENANCY`)"
                )
                yield Wrong(at("jobs", name, "runs", run, "each"), message, remedy)


@rule("TY505", "more environment variables than OCI allows")
def too_much(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for run, one in job.runs.items():
            # The environment also has the command and its arguments twice: for the launcher and for ADS.
            words = 2 * sum(len(word) + 4 for word in (job.command, *one.args))
            largest = max(
                (_count_characters({**job.env, **role.env, **one.env}) for role in job.roles.values()), default=0
            )
            if largest + words + OUR_CHARACTERS > MOST_CHARACTERS:
                message = f"variables, command and arguments have more than {MOST_CHARACTERS} characters on each node"
                remedy = "keep long values in the bucket, or in a file of the code folder"
                yield Wrong(at("jobs", name, "runs", run), message, remedy)


def _count_characters(variables: Mapping[str, EnvValue]) -> int:
    texts = ((key, value if isinstance(value, str) else value.value or "") for key, value in variables.items())
    return sum(len(key) + len(value) for key, value in texts)


@rule("TY303", "an image the nodes cannot pull")
def image_outside_ocir(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for image in images_of(stack):
        if "${" in image.name or "://" in image.text or _OCIR.fullmatch(image.host):
            continue
        message = f"`{image.text}` is not in OCI's registry, and job runs pull only from there"
        yield Wrong(image_path(image), message, f"push it to the stack's repository and write `{OURS}:<tag>`")


@rule("TY305", "an image of another region")
def other_region(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    for image in images_of(stack):
        match = _OCIR.fullmatch(image.host)
        if match is None or stack.region not in facts.regions:
            continue
        ours = facts.regions[stack.region]
        theirs = match["key"] or facts.regions.get(match["region"], "")
        if theirs and theirs not in (ours, stack.region):
            message = f"`{image.host}` is not the registry of {stack.region}, which is {ours}.ocir.io"
            yield Wrong(image_path(image), message, f"push the image there and write `{OURS}:<tag>`")


@rule("TY306", "an image outside the stack's repository", severity="warning")
def other_repository(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    ours = stack.repository_name
    for image in images_of(stack):
        if image.name.startswith(f"{OURS}/"):
            # Repositories do not nest: a longer path is another repository, which nobody makes.
            message = f"`{OURS}` is the repository `{ours}`, and `{image.name}` is another one, which is not made"
            tag = "-".join(filter(None, (image.name.rpartition("/")[2], image.tag)))
            yield Wrong(image_path(image), message, f"tell images apart by their tags: `{OURS}:{tag}`")
            continue
        if not _OCIR.fullmatch(image.host) or stack.access.mode == "proof-of-concept":
            continue
        repository = image.name.split("/", 2)[-1]
        if repository != ours:
            message = f"`{repository}` is not the stack's repository `{ours}`, the only one that the runs may read"
            remedy = f"write `{OURS}:<tag>`, or name this repository under `registry: {{ existing: … }}`"
            yield Wrong(image_path(image), message, remedy)


def _jobs_on_targets(stack: OciStack) -> Iterator[tuple[str, OciJob, str]]:
    for name, job in stack.jobs.items():
        if job.compute_target is not None:
            yield name, job, job.compute_target


@rule("TY832", "a compute target that the stack does not have")
def unknown_compute_target(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job, target in _jobs_on_targets(stack):
        if target not in stack.compute_targets:
            message = f"`{target}` is not one of `trainyard:computeTargets`"
            remedy = f"add it there: `{target}: {{ shape: {job.shape.name} }}`, or `{target}: {{ existing: OCID }}`"
            if stack.compute_targets:
                remedy = f"{suggest_name(target, stack.compute_targets)}, or {remedy}"
            yield Wrong(at("jobs", name, "computeTarget"), message, remedy)


@rule("TY833", "a compute target that is neither made nor there, or both")
def made_or_there(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, target in stack.compute_targets.items():
        if target.shape is None and target.existing is None:
            message = "has neither the `shape` of its machines nor `existing`"
            yield Wrong(at("computeTargets", name), message, "add `shape`, or `existing`")
        elif target.existing is not None and target != ComputeTarget(existing=target.existing):
            message = "names an existing target: the keys about its machines have no effect"
            yield Wrong(at("computeTargets", name, "existing"), message, "remove the other keys, or `existing`")


@rule("TY834", "nodes on a compute target without a subnet in common")
def without_subnet(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job, _target in _jobs_on_targets(stack):
        if not job.joins_subnet and job.nodes > 1:
            message = (
                f"each of its {job.nodes} nodes is a job run of its own, and OCI's API takes no subnet for a job run "
                "on a compute target: they would not be in the stack's network, and may never meet"
            )
            remedy = "write `layout: node-groups`, whose nodes share the job's subnet; or use one node"
            yield Wrong(at("jobs", name, "computeTarget"), message, remedy)


@rule("TY835", "a job that does not fit its compute target")
def too_large_for_target(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    for name, job, key in _jobs_on_targets(stack):
        target, path = stack.compute_targets.get(key), at("jobs", name, "shape")
        wanted = share_of(job.shape, facts.shapes)
        if wanted is None and not is_flexible(job.shape):
            message = f"a job asks a compute target for a size, and the catalog does not know that of {job.shape.name}"
            yield Wrong(path, message, f"write `shape: {{ name: {job.shape.name}, ocpus: 4, memoryGb: 64 }}`")
        if wanted is None or target is None or target.shape is None or target.existing is not None:
            continue
        machines = f"{count_noun(target.instances, 'machine')} of {target.shape.name}"
        if job.shape.name != target.shape.name:
            message = f"asks for {job.shape.name}, but `{key}` has {machines}"
            yield Wrong(path, message, f"use {target.shape.name}, or another target")
        elif (machine := share_of(target.shape, facts.shapes)) is not None:
            # The nodes of one run train together. Several runs can wait for each other.
            room = wanted.times_in(machine) * target.instances
            if room < job.nodes:
                message = (
                    f"a run has {count_noun(job.nodes, 'node')} of this size, but `{key}` holds {room}: {machines}"
                )
                remedy = f"give `{key}` more `instances`, or let a node ask for less: `ocpus` and `memoryGb`"
                yield Wrong(path, message, remedy)


@rule("TY836", "a setting that jobs on compute targets do not have")
def setting_without_effect_on_target(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    default = OciJob.__dataclass_fields__["block_storage_gb"].default
    for name, job, target in _jobs_on_targets(stack):
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
def job_on_compute_target(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, _job, _target in _jobs_on_targets(stack):
        message = (
            "OCI's API and Oracle's provider take compute targets for jobs; Oracle's pages describe them for model "
            "deployments only"
        )
        remedy = "try it in your tenancy first: docs/production.md lists what only a real tenancy can show"
        yield Wrong(at("jobs", name, "computeTarget"), message, remedy)


@rule("TY848", "a compute target that no job uses", severity="warning")
def unused_compute_target(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    used = {target for _, _, target in _jobs_on_targets(stack)}
    for name, target in stack.compute_targets.items():
        if target.existing is None and name not in used:
            message = "no job names it, and OCI charges for its machines while it exists"
            yield Wrong(at("computeTargets", name), message, f"write `computeTarget: {name}` in a job, or remove it")
