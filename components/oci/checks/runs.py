# SPDX-License-Identifier: Apache-2.0
"""Checks of machines, disks, mounts and times against what OCI offers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from components.oci.checks.registry import rule
from components.oci.stack import OciStack
from components.oci.stack_targets import is_flexible
from schemas.checks.bounds import disks_within, runtimes_within
from schemas.checks.images import OURS, images_of, path_of
from schemas.checks.registry import Wrong, at
from schemas.each import MOST_RUNS, live_at_once
from schemas.facts import Facts
from schemas.findings import Path
from schemas.model import EnvValue, Shape
from schemas.names import plural, suggestion

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
def runtime(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    return runtimes_within(stack, SHORTEST, LONGEST, "OCI takes")


@rule("TY803", "a size of block storage that OCI does not offer")
def disk(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    return disks_within(stack, SMALLEST_DISK, LARGEST_DISK)


def _shapes(stack: OciStack) -> Iterator[tuple[Path, Shape, bool]]:
    """Every shape, and whether it is of whole machines: on a compute target a node may ask for less."""
    for name, job in stack.jobs.items():
        yield at("jobs", name, "shape"), job.shape, job.compute_target is None
    for name, target in stack.compute_targets.items():
        if target.shape is not None:
            yield at("computeTargets", name, "shape"), target.shape, True


@rule("TY811", "an unknown shape", severity="warning")
def unknown_shape(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    for path, shape, _ in _shapes(stack):
        if shape.name not in facts.shapes:
            remedy = suggestion(shape.name, facts.shapes)
            if not remedy.startswith("did"):
                remedy = "check its name; a new shape works although it is not listed"
            yield Wrong(path, f"`{shape.name}` is not in the catalog of shapes", remedy)


@rule("TY812", "a flexible shape without its size")
def flexible(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for path, shape, _is_whole in _shapes(stack):
        if is_flexible(shape) and (shape.ocpus is None or shape.memory_gb is None):
            message = f"{shape.name} is flexible: it needs `ocpus` and `memoryGb`"
            remedy = f"write `shape: {{ name: {shape.name}, ocpus: 4, memoryGb: 64 }}`"
            yield Wrong(path, message, remedy)


@rule("TY813", "a fixed shape with a size")
def fixed(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    for path, shape, is_whole in _shapes(stack):
        is_fixed = shape.name in facts.shapes and not facts.shapes[shape.name].get("flex")
        if is_whole and is_fixed and (shape.ocpus is not None or shape.memory_gb is not None):
            message = f"{shape.name} has a fixed size: `ocpus` and `memoryGb` have no effect"
            yield Wrong(path, message, f"write `shape: {shape.name}`")


@rule("TY814", "too little or too much memory for the OCPUs")
def memory(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for path, shape, is_whole in _shapes(stack):
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
                nodes = plural(together * job.nodes, "node")
                message = f"makes {plural(together, 'run')} that start together: {nodes} of {job.shape.name} at once"
                remedy = (
                    "compare with the account's limit for this shape (Console: Governance, Limits, Quotas and Usage; "
                    "`oci limits value list --service-name data-science --compartment-id TENANCY`)"
                )
                yield Wrong(at("jobs", name, "runs", run, "each"), message, remedy)


@rule("TY505", "more environment variables than OCI allows")
def too_much(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for run, one in job.runs.items():
            # The environment also holds the command and its arguments: once for the launcher, once for ADS.
            words = 2 * sum(len(word) + 4 for word in (job.command, *one.args))
            largest = max((_characters({**job.env, **role.env, **one.env}) for role in job.roles.values()), default=0)
            if largest + words + OUR_CHARACTERS > MOST_CHARACTERS:
                message = f"variables, command and arguments have more than {MOST_CHARACTERS} characters on each node"
                remedy = "keep long values in the bucket, or in a file of the code folder"
                yield Wrong(at("jobs", name, "runs", run), message, remedy)


def _characters(variables: Mapping[str, EnvValue]) -> int:
    texts = ((key, value if isinstance(value, str) else value.value or "") for key, value in variables.items())
    return sum(len(key) + len(value) for key, value in texts)


@rule("TY303", "an image the nodes cannot pull")
def elsewhere(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for image in images_of(stack):
        if "${" in image.name or "://" in image.text or _OCIR.fullmatch(image.host):
            continue
        message = f"`{image.text}` is not in OCI's registry, and job runs pull only from there"
        yield Wrong(path_of(image), message, f"push it to the stack's repository and write `{OURS}:<tag>`")


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
            yield Wrong(path_of(image), message, f"push the image there and write `{OURS}:<tag>`")


@rule("TY306", "an image outside the stack's repository", severity="warning")
def other_repository(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    ours = stack.repository_name
    for image in images_of(stack):
        if image.name.startswith(f"{OURS}/"):
            # Repositories do not nest: a longer path is another repository, which nobody makes.
            message = f"`{OURS}` is the repository `{ours}`, and `{image.name}` is another one, which is not made"
            tag = "-".join(filter(None, (image.name.rpartition("/")[2], image.tag)))
            yield Wrong(path_of(image), message, f"tell images apart by their tags: `{OURS}:{tag}`")
            continue
        if not _OCIR.fullmatch(image.host) or stack.access.mode == "proof-of-concept":
            continue
        repository = image.name.split("/", 2)[-1]
        if repository != ours:
            message = f"`{repository}` is not the stack's repository `{ours}`, the only one that the runs may read"
            remedy = f"write `{OURS}:<tag>`, or name this repository under `registry: {{ existing: … }}`"
            yield Wrong(path_of(image), message, remedy)
