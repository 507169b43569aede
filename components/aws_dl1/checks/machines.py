# SPDX-License-Identifier: Apache-2.0
"""Checks of machines, disks, times and quotas against what AWS offers and the account may have."""

from __future__ import annotations

from collections.abc import Iterator

from components.aws_dl1.checks.registry import rule
from components.aws_dl1.stack import AwsDl1Stack
from schemas.checks.bounds import disks_within, runtimes_within
from schemas.checks.registry import Wrong, at
from schemas.facts import Facts
from schemas.names import listing, plural

SMALLEST_DISK, LARGEST_DISK = 50, 16_384
SHORTEST, LONGEST = 1, 30 * 24 * 60


@rule("TY850", "a machine without Gaudi")
def shape(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.shape.name not in facts.shapes:
            message = f"`{job.shape.name}` is not a DL1 instance type"
            yield Wrong(at("jobs", name, "shape"), message, f"use {listing(facts.shapes)}")


@rule("TY163", "a disk that AWS does not offer or the image does not fit on")
def disk(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    return disks_within(stack, SMALLEST_DISK, LARGEST_DISK)


@rule("TY164", "a maximum runtime that nodes cannot keep")
def runtime(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    return runtimes_within(stack, SHORTEST, LONGEST, "a run has")


@rule("TY165", "more machines than the account may run")
def vcpus(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    quota = stack.quota.vcpus
    if quota is None:
        return
    # On-Demand and spot instances have a quota each. Clusters of all jobs may be up at once.
    for spot in (False, True):
        jobs = [job for job in stack.jobs.values() if job.cluster.spot is spot]
        machines = sum(job.nodes for job in jobs)
        needed = sum(job.nodes * facts.shapes.get(job.shape.name, {}).get("vcpus", 0) for job in jobs)
        if needed > quota:
            message = f"{plural(machines, 'machine')} have {needed} vCPUs, but the account may run {quota}"
            remedy = "ask AWS for a larger quota of DL instances, or use fewer nodes"
            yield Wrong(at("quota", "vcpus"), message, remedy)


@rule("TY166", "more public addresses than the account may have")
def addresses(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
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
