# SPDX-License-Identifier: Apache-2.0
"""Checks of a job's cluster: its interfaces, its image, how it is bought, and what it costs while no run trains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from catalog.tables import table
from components.aws.stack import AwsDl1Stack, AwsJob, Cluster, rule
from schemas.checks.run_checks import disks_within, runtimes_within
from schemas.checks.script_checks import call_matches
from schemas.facts import Facts
from schemas.findings import Path, Wrong, at
from schemas.job_on_platform import JobOnPlatform
from schemas.name_suggestions import count_noun, quoted_list, suggest_name
from schemas.scripts import Call

SSH_OF_THE_MACHINE = 22
RELEASE = "{release}"
_IMAGE_OF_RELEASE = re.compile(r"vault\.habana\.ai/gaudi-docker/(?P<release>[0-9.]+)/")
SMALLEST_DISK, LARGEST_DISK = 50, 16_384
SHORTEST, LONGEST = 1, 30 * 24 * 60


def _job_clusters(stack: AwsDl1Stack) -> Iterator[tuple[str, AwsJob, Cluster]]:
    for name, job in stack.jobs.items():
        yield name, job, job.cluster


def _cluster_path(job: str, key: str) -> Path:
    return at("jobs", job, "cluster", key)


@rule("TY851", "a number of EFA interfaces that the machine does not have")
def too_many_interfaces(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, cluster in _job_clusters(stack):
        most = facts.shapes.get(job.shape.name, {}).get("efa_interfaces", 4)
        if not 0 <= cluster.efa <= most:
            message = f"{cluster.efa} EFA interfaces: {job.shape.name} has {most} network cards, one for each"
            yield Wrong(_cluster_path(name, "efa"), message, f"use 1 to {most}")


@rule("TY852", "an automatic public address beside several interfaces")
def automatic_address(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, _job, cluster in _job_clusters(stack):
        if cluster.public_address == "automatic" and cluster.efa > 1:
            message = f"AWS gives no automatic public address to a machine with {cluster.efa} network interfaces"
            remedy = "use `publicAddress: elastic`, or `efa: 1`, or none: people reach nodes through Systems Manager"
            yield Wrong(_cluster_path(name, "publicAddress"), message, remedy)


@rule("TY853", "no image for the machines")
def no_image(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, _job, cluster in _job_clusters(stack):
        if cluster.ami is None and cluster.ami_parameter is None:
            message = "nothing says which image the machines start from"
            remedy = (
                "add `cluster: { ami: ami-0a1b2c3d4e5f60718 }` with the id of an image that has the drivers, or "
                "`amiParameter`, the name of a parameter that holds it"
            )
            yield Wrong(at("jobs", name), message, remedy)
        if cluster.ami is not None and cluster.ami_parameter is not None:
            message = "the image is named twice, by its id and by a parameter"
            yield Wrong(_cluster_path(name, "amiParameter"), message, "keep one of `ami` and `amiParameter`")


@rule("TY854", "an unknown release of the Gaudi software", severity="warning")
def unknown_release(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, cluster in _job_clusters(stack):
        releases = facts.shapes.get(job.shape.name, {}).get("releases", {})
        if releases and cluster.release not in releases:
            by_name = RELEASE in (cluster.ami_parameter or "")
            then = ", so no image may be found for it" if by_name else ""
            message = f"`{cluster.release[:40]}` is not a release that is known for {job.shape.name}{then}"
            yield Wrong(_cluster_path(name, "release"), message, suggest_name(cluster.release, releases))


@rule("TY855", "a container image of another release", severity="warning")
def other_release(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, cluster in _job_clusters(stack):
        image = _IMAGE_OF_RELEASE.match(job.image)
        if image and image["release"] != cluster.release:
            message = f"the image has Gaudi's software {image['release']}, but the machines have {cluster.release}"
            yield Wrong(at("jobs", name, "image"), message, f"use an image of {cluster.release}, or change `release`")


@rule("TY856", "spare capacity and a reservation")
def spot_and_reserved(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, _job, cluster in _job_clusters(stack):
        if cluster.spot and cluster.reservation is not None:
            message = "a reservation is for On-Demand instances: spot instances cannot start in it"
            yield Wrong(_cluster_path(name, "spot"), message, "remove `spot`, or the reservation")


@rule("TY857", "an SSH port that something else uses")
def ssh_port(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, cluster in _job_clusters(stack):
        port = cluster.ssh_port
        if port == SSH_OF_THE_MACHINE:
            message = "22 is the SSH port of the machine itself, and containers share its network"
            yield Wrong(_cluster_path(name, "sshPort"), message, "use 3022")
        trained = facts.platforms[stack.platform].trains or ()
        row = facts.framework(job) if job.framework in trained else None
        for used, taken in JobOnPlatform.of(stack, job, row).numbered() if row else ():
            if taken.first <= port <= taken.last:
                message = f"{port} is one of the job's `{used.label}` ports ({taken})"
                yield Wrong(
                    _cluster_path(name, "sshPort"),
                    message,
                    f"use {'3022, or ' if port != 3022 else ''}another port that nothing uses",
                )


@rule("TY858", "libfabric without EFA")
def libfabric_without_efa(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, _job, cluster in _job_clusters(stack):
        if cluster.efa == 0 and cluster.host_nic != "sockets":
            message = "libfabric reaches other nodes over EFA, but no interface is one"
            yield Wrong(_cluster_path(name, "hostNic"), message, "use `hostNic: sockets`, or `efa: 4`")


@rule("TY859", "machines that never stop", severity="warning")
def never_stops(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, cluster in _job_clusters(stack):
        if cluster.stop_when_idle == 0:
            nodes = count_noun(job.nodes, "machine")
            message = f"{nodes} of {job.shape.name} cost money around the clock, whether anything trains or not"
            yield Wrong(_cluster_path(name, "stopWhenIdle"), message, "use 30, or end the stack when nobody trains")


@rule("TY161", "a placement group that does not matter")
def placement_of_one(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, cluster in _job_clusters(stack):
        if cluster.placement_group is not None and job.nodes == 1 and cluster.reservation is None:
            message = "a placement group brings several machines close together, but this job has one"
            yield Wrong(_cluster_path(name, "placementGroup"), message, "remove it")


@rule("TY162", "tensors carried by what the accelerators do not have")
def unsuitable_backend(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, _cluster in _job_clusters(stack):
        if job.options.get("backend") == "nccl" and job.shape.name in facts.shapes:
            message = f"NCCL is for NVIDIA's GPUs; the accelerators of {job.shape.name} use HCCL"
            yield Wrong(at("jobs", name, "options", "backend"), message, f"use {quoted_list(['hccl', 'auto'])}")


@rule("TY850", "a machine without Gaudi")
def not_a_dl1_shape(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.shape.name not in facts.shapes:
            message = f"`{job.shape.name}` is not a DL1 instance type"
            yield Wrong(at("jobs", name, "shape"), message, f"use {quoted_list(facts.shapes)}")


@rule("TY163", "a disk that AWS does not offer or the image does not fit on")
def disk_size(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    return disks_within(stack, SMALLEST_DISK, LARGEST_DISK)


@rule("TY164", "a maximum runtime that nodes cannot keep")
def maximum_runtime(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    return runtimes_within(stack, SHORTEST, LONGEST, "a run has")


@rule("TY165", "more machines than the account may run")
def too_few_vcpus(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    quota = stack.quota.vcpus
    if quota is None:
        return
    # On-Demand and spot instances have a quota each. Clusters of all jobs may be up at once.
    for spot in (False, True):
        jobs = [job for job in stack.jobs.values() if job.cluster.spot is spot]
        machines = sum(job.nodes for job in jobs)
        needed = sum(job.nodes * facts.shapes.get(job.shape.name, {}).get("vcpus", 0) for job in jobs)
        if needed > quota:
            message = f"{count_noun(machines, 'machine')} have {needed} vCPUs, but the account may run {quota}"
            remedy = "ask AWS for a larger quota of DL instances, or use fewer nodes"
            yield Wrong(at("quota", "vcpus"), message, remedy)


@rule("TY166", "more public addresses than the account may have")
def too_few_addresses(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    elastic = sum(job.cluster.public_address == "elastic" for job in stack.jobs.values())
    needed = elastic + int(stack.network.nat and stack.makes("network"))
    if needed > stack.quota.addresses:
        message = f"{needed} Elastic IP addresses are needed, but the account may have {stack.quota.addresses}"
        remedy = "ask AWS for a larger quota and give it as `quota: { addresses: … }`, or use fewer addresses"
        yield Wrong(at("quota", "addresses"), message, remedy)


@rule("TY868", "accelerators that nothing uses", severity="warning")
def idle_accelerators(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        cards = facts.shapes.get(job.shape.name, {}).get("accelerators", 0)
        processes = job.options.get("processes", 1)
        if type(processes) is int and 0 < processes < cards:
            message = f"each node trains with {processes} of its {cards} accelerators: a process uses one"
            yield Wrong(at("jobs", name, "options"), message, f"set `options: {{ processes: {cards} }}`")


@rule("TY8200", "a script that does not use the machine's accelerators", severity="warning")
def idle_gaudi(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    needed = table("aws_dl1")["scripts"]
    for name in stack.jobs:
        scripts = facts.scripts.get(name)
        if scripts is None or not scripts.imports:
            continue
        if any(one.module.partition(".")[0] == needed["imports"] for one in scripts.imports):
            continue
        other = next((call for call in scripts.calls if _asks_for_cuda(call)), None)
        lacks = f"no script imports `{needed['imports']}`, so the accelerators stay idle and the processors train"
        message = f"{other.file}:{other.line} asks for CUDA, and {lacks}" if other else lacks
        yield Wrong(at("jobs", name, "code"), message, needed["remedy"])


def _asks_for_cuda(call: Call) -> bool:
    for row in table("scripts")["cuda"]:
        values = [str(value) for value in (*call.positional, *call.named.values())]
        has_value = any(fnmatchcase(value, pattern) for value in values for pattern in row.get("values", ()))
        if call_matches(call, row["calls"]) and (has_value or "values" not in row):
            return True
    return False
