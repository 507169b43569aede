# SPDX-License-Identifier: Apache-2.0
"""Checks of a job's cluster: its image, how it is bought, and what it costs while no run trains."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.aws import CAPACITY_BLOCK, SPOT, accelerators
from components.aws.stack import AwsDl1Stack, AwsJob, Cluster, rule
from schemas.checks.run_checks import disks_within, runtimes_within
from schemas.facts import Facts
from schemas.findings import Path, Wrong, at
from schemas.job_on_platform import JobOnPlatform
from schemas.name_suggestions import count_noun, nearest_name

SSH_OF_THE_MACHINE = 22
SMALLEST_DISK, LARGEST_DISK = 50, 16_384
SHORTEST, LONGEST = 1, 30 * 24 * 60


def _job_clusters(stack: AwsDl1Stack) -> Iterator[tuple[str, AwsJob, Cluster]]:
    for name, job in stack.jobs.items():
        yield name, job, job.cluster


def _cluster_path(job: str, key: str) -> Path:
    return at("jobs", job, "cluster", key)


@rule("TY853", "no image for the machines")
def no_image(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    published = {row.name: row for row in accelerators().values() if row.ami}
    for name, job, cluster in _job_clusters(stack):
        own, named = job.accelerator, cluster.ami
        newest = f"`ami: {own.name}`, the newest one that AWS publishes, or " if own and own.ami else ""
        ways = (
            f"{newest}`ami: ami-0a1b2c3d4e5f60718`, the id of one with the drivers, or `amiParameter`, which holds it"
        )
        if named is None and cluster.ami_parameter is None:
            message = "nothing says which image the machines start from"
            yield Wrong(at("jobs", name), message, f"add to `cluster` {ways}")
        elif named is not None and not named.startswith("ami-"):
            near = nearest_name(named, published)
            if named not in published:
                message = f"AWS publishes no machine image for `{named}`"
                yield Wrong(_cluster_path(name, "ami"), message, f"did you mean `{near}`?" if near else f"use {ways}")
            elif own and published[named].ami != own.ami:
                message = f"`{named}` is the image for {published[named].words}, but {job.shape.name} has {own.words}"
                yield Wrong(_cluster_path(name, "ami"), message, f"use {ways}")
        if cluster.ami is not None and cluster.ami_parameter is not None:
            message = "the image is named twice, by its id and by a parameter"
            yield Wrong(_cluster_path(name, "amiParameter"), message, "keep one of `ami` and `amiParameter`")


@rule("TY856", "machines that AWS does not sell like this")
def impossible_purchase(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, cluster in _job_clusters(stack):
        if cluster.spot is not None and cluster.market is not None:
            message = "`market` and `spot` both say how the machines are bought"
            yield Wrong(_cluster_path(name, "spot"), message, "keep `market`")
        elif cluster.bought == SPOT and cluster.reservation is not None:
            message = "a reservation is for On-Demand instances: spot instances cannot start in it"
            key = "spot" if cluster.spot else "market"
            yield Wrong(_cluster_path(name, key), message, f"remove `{key}`, or the reservation")
        if cluster.bought != CAPACITY_BLOCK:
            continue
        if job.machine and not job.machine.blocks:
            message = f"AWS sells no capacity blocks of {job.machine.name}"
            yield Wrong(_cluster_path(name, "market"), message, "use `on-demand` or `spot`")
        if cluster.reservation is None:
            message = "a capacity block is bought before, by hand, and nothing says which one"
            remedy = "add `reservation: cr-…`, the id of the block (`aws ec2 describe-capacity-reservations`)"
            yield Wrong(_cluster_path(name, "market"), message, remedy)
        if cluster.placement_group is not None:
            message = "AWS starts no machine of a capacity block in a placement group: the block is close together"
            yield Wrong(_cluster_path(name, "placementGroup"), message, "remove it")


@rule("TY168", "machines of a capacity block that would stop when idle", severity="warning")
def stops_in_block(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, _job, cluster in _job_clusters(stack):
        if cluster.bought == CAPACITY_BLOCK and cluster.stop_when_idle:
            message = (
                "machines of a capacity block are not stopped when idle: the block is paid for, and the places of "
                "stopped machines are free again only after minutes"
            )
            yield Wrong(_cluster_path(name, "stopWhenIdle"), message, "remove it")


@rule("TY857", "an SSH port that something else uses")
def ssh_port(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, cluster in _job_clusters(stack):
        port = cluster.ssh_port
        if port == SSH_OF_THE_MACHINE:
            message = "22 is the SSH port of the machine itself, and containers share its network"
            yield Wrong(_cluster_path(name, "sshPort"), message, "use 3022")
        trained, _why = stack.frameworks_of(job)
        row = facts.framework(job) if trained is None or job.framework in trained else None
        for used, taken in JobOnPlatform.of(stack, job, row).numbered() if row else ():
            # sshd starts first, and in a range a framework finds another port that is free.
            if taken.size == 1 and taken.first == port:
                message = f"{port} is one of the job's `{used.label}` ports ({taken})"
                other = f"{'3022, or ' if port != 3022 else ''}another port that nothing uses"
                yield Wrong(_cluster_path(name, "sshPort"), message, f"use {other}")


@rule("TY859", "machines that never stop", severity="warning")
def never_stops(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, cluster in _job_clusters(stack):
        if cluster.stop_when_idle == 0 and cluster.bought != CAPACITY_BLOCK:
            nodes = count_noun(job.nodes, "machine")
            message = f"{nodes} of {job.shape.name} cost money around the clock, whether anything trains or not"
            yield Wrong(_cluster_path(name, "stopWhenIdle"), message, "use 30, or end the stack when nobody trains")


@rule("TY161", "a placement group that does not matter")
def placement_of_one(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, cluster in _job_clusters(stack):
        if cluster.placement_group is not None and job.nodes == 1 and cluster.reservation is None:
            message = "a placement group brings several machines close together, but this job has one"
            yield Wrong(_cluster_path(name, "placementGroup"), message, "remove it")


@rule("TY163", "a disk that AWS does not offer or the image does not fit on")
def disk_size(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    return disks_within(stack, SMALLEST_DISK, LARGEST_DISK)


@rule("TY164", "a maximum runtime that nodes cannot keep")
def maximum_runtime(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    return runtimes_within(stack, SHORTEST, LONGEST, "a run has")


@rule("TY166", "more public addresses than the account may have")
def too_few_addresses(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    elastic = sum(job.cluster.public_address == "elastic" for job in stack.jobs.values())
    needed = elastic + int(stack.network.nat and stack.makes("network"))
    if needed > stack.quota.addresses:
        message = f"{needed} Elastic IP addresses are needed, but the account may have {stack.quota.addresses}"
        remedy = "ask AWS for a larger quota and give it as `quota: { addresses: … }`, or use fewer addresses"
        yield Wrong(at("quota", "addresses"), message, remedy)
