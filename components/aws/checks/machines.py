# SPDX-License-Identifier: Apache-2.0
"""Checks of a job against the rows of its machine and of the machine's accelerators (catalog/aws_machines.toml and
aws_accelerators.toml)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from catalog.aws import Accelerator, AwsMachine, VcpuQuota, accelerators, vcpu_quota
from catalog.tables import table
from components.aws.stack import AwsDl1Stack, AwsJob, rule
from schemas.checks.script_checks import call_matches
from schemas.facts import Facts
from schemas.findings import Wrong, at
from schemas.name_suggestions import count_noun, nearest_name, quoted_list, suggest_name
from schemas.scripts import Call, Scripts

RELEASE = "{release}"
_SOCKETS = "sockets"
# A script that calls one of them may have another way without GPUs.
_ASKS_FIRST = ("torch.cuda.is_available", "torch.cuda.device_count")


def _jobs_on_machines(stack: AwsDl1Stack) -> Iterator[tuple[str, AwsJob, AwsMachine, Accelerator]]:
    """The jobs whose machine is known."""
    for name, job in stack.jobs.items():
        if job.machine and job.accelerator:
            yield name, job, job.machine, job.accelerator


@rule("TY850", "an instance type that trainyard does not know")
def unknown_machine(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.machine is None:
            near = nearest_name(job.shape.name, facts.shapes)
            # One for each accelerator: the whole list would fill the screen.
            some: dict[str, str] = {}
            for machine, row in facts.shapes.items():
                some.setdefault(row["accelerator"], machine)
            every = f"use one of the table in docs/aws.md, such as {quoted_list(some.values())}"
            message = f"`{job.shape.name}` is not an instance type that trainyard knows"
            yield Wrong(at("jobs", name, "shape"), message, f"did you mean `{near}`?" if near else every)


@rule("TY851", "a number of EFA interfaces that the machine does not have")
def too_many_interfaces(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, machine, _own in _jobs_on_machines(stack):
        most = machine.efa_interfaces
        if not 0 <= job.efa <= most:
            has = f"has {count_noun(most, 'network card')} with one each" if most else "has none"
            remedy = f"use 1 to {most}, or remove it: that means all of them" if most else "remove it"
            yield Wrong(at("jobs", name, "cluster", "efa"), f"{job.efa} EFA interfaces: {machine.name} {has}", remedy)


@rule("TY167", "fewer EFA interfaces than the machine has", severity="warning")
def too_few_interfaces(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, machine, own in _jobs_on_machines(stack):
        # One interface alone may have an automatic public address, and sockets use no EFA: TY858 asks for them.
        without = job.cluster.host_nic == _SOCKETS or (own.host_nic and job.efa == 0)
        chosen = job.cluster.public_address == "automatic" or without
        if job.nodes > 1 and 0 <= job.efa < machine.efa_interfaces and not chosen:
            message = f"nodes use {job.efa} of the {machine.efa_interfaces} EFA interfaces of {machine.name}"
            remedy = "remove it: then they use all, and data between nodes moves fastest"
            yield Wrong(at("jobs", name, "cluster", "efa"), message, remedy)


@rule("TY852", "an automatic public address beside several interfaces")
def automatic_address(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, machine, _own in _jobs_on_machines(stack):
        interfaces = len(machine.interfaces(max(0, job.efa)))
        if job.cluster.public_address == "automatic" and interfaces > 1:
            message = f"AWS gives no automatic public address to a machine with {interfaces} network interfaces"
            remedy = "use `publicAddress: elastic`, or `efa: 1`, or none: people reach nodes through Systems Manager"
            yield Wrong(at("jobs", name, "cluster", "publicAddress"), message, remedy)


@rule("TY854", "an unknown release of the accelerators' software", severity="warning")
def unknown_release(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, machine, own in _jobs_on_machines(stack):
        if own.releases and job.release not in own.releases:
            by_name = RELEASE in (job.cluster.ami_parameter or "")
            then = ", so no image may be found for it" if by_name else ""
            message = f"`{job.release[:40]}` is not a release that is known for {machine.name}{then}"
            yield Wrong(at("jobs", name, "cluster", "release"), message, suggest_name(job.release, own.releases))


@rule("TY855", "a container image that the machine cannot use", severity="warning")
def unsuitable_image(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, machine, own in _jobs_on_machines(stack):
        named = _named_by_image(job, own)
        if "release" in named and named["release"] != job.release:
            message = f"the image has {own.words}'s software {named['release']}, but the machines have {job.release}"
            yield Wrong(at("jobs", name, "image"), message, f"use an image of {job.release}, or change `release`")
        elif named:
            for software, least in own.oldest.get(machine.model, {}).items():
                has = re.search(own.versions[software], job.image)
                if has and tuple(map(int, has.groups())) < tuple(map(int, least.split("."))):
                    version = ".".join(has.groups())
                    message = f"the image has {software} {version}: too old for the {machine.model} of {machine.name}"
                    yield Wrong(at("jobs", name, "image"), message, f"use an image with {software} {least} or newer")
        elif not named and (other := _accelerator_of_image(job)) and machine.accelerators:
            message = f"the image is for {other.words}, but {machine.name} has {own.words}"
            yield Wrong(at("jobs", name, "image"), message, f"use an image for {own.words}")


def _named_by_image(job: AwsJob, row: Accelerator) -> Mapping[str, str]:
    match = re.search(row.image, job.image) if row.image else None
    return match.groupdict() or {"": ""} if match else {}


def _accelerator_of_image(job: AwsJob) -> Accelerator | None:
    return next((row for row in accelerators().values() if _named_by_image(job, row)), None)


@rule("TY858", "libfabric without EFA")
def libfabric_without_efa(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, _machine, own in _jobs_on_machines(stack):
        if own.host_nic and job.efa == 0 and job.cluster.host_nic != _SOCKETS:
            message = "libfabric reaches other nodes over EFA, but no interface is one"
            remedy = "use `hostNic: sockets`, or remove `efa`: that means all"
            yield Wrong(at("jobs", name, "cluster", "hostNic"), message, remedy)


@rule("TY162", "tensors carried by what the accelerators do not have")
def unsuitable_backend(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, machine, own in _jobs_on_machines(stack):
        backend = job.options.get("backend", "auto")
        # A machine without accelerators has the check of all platforms.
        if backend not in own.backends and (machine.accelerators or backend != "nccl"):
            others = [row.words for row in accelerators().values() if backend in row.backends]
            whose = f" is for {' and '.join(others)}" if others else " is unknown"
            message = f"`{backend}`{whose}; {machine.name} has {own.words}"
            yield Wrong(at("jobs", name, "options", "backend"), message, f"use {quoted_list(own.backends)}")


@rule("TY165", "more machines than the account may run")
def too_few_vcpus(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    limits = stack.quota.vcpus
    if limits is None:
        return
    # Clusters of all jobs may be up at once.
    needed, machines = Counter[VcpuQuota](), Counter[VcpuQuota]()
    for _name, job, machine, _own in _jobs_on_machines(stack):
        if quota := vcpu_quota(machine, job.cluster.bought):
            needed[quota] += job.nodes * machine.vcpus
            machines[quota] += job.nodes
    for quota, vcpus in needed.items():
        limit = limits if isinstance(limits, int) else limits.get(quota.code)
        if limit is not None and vcpus > limit:
            message = f"{count_noun(machines[quota], 'machine')} have {vcpus} vCPUs, but the account may run {limit}"
            remedy = f"ask AWS for a larger quota of {quota.words} ({quota.code}), or use fewer nodes"
            yield Wrong(at("quota", "vcpus"), message, remedy)
    known = {code for row in table("aws_machines")["quotas"].values() for code in row.values()}
    for code in () if isinstance(limits, int) else limits.keys() - known:
        message = f"no machine that trainyard knows counts against {code}"
        yield Wrong(at("quota", "vcpus", code), message, suggest_name(code, known & {quota.code for quota in needed}))


@rule("TY868", "accelerators that nothing uses", severity="warning")
def idle_accelerators(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, machine, _own in _jobs_on_machines(stack):
        framework = facts.framework(job)
        processes = job.options.get("processes", 1)
        counted = framework is not None and framework.processes
        cards = machine.accelerators
        if counted and type(processes) is int and 0 < processes < cards:
            message = f"each node trains with {processes} of its {cards} accelerators: a process uses one"
            remedy = f"set `options: {{ processes: {machine.processes or cards} }}`"
            yield Wrong(at("jobs", name, "options"), message, remedy)


@rule("TY169", "a setting of other accelerators", severity="warning")
def setting_of_others(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, machine, own in _jobs_on_machines(stack):
        cluster = job.cluster
        has_release = cluster.release is not None or RELEASE in (cluster.ami_parameter or "")
        for key, is_set, has in (
            ("hostNic", cluster.host_nic != "auto", own.host_nic),
            ("release" if cluster.release else "amiParameter", has_release, bool(own.releases)),
        ):
            if is_set and not has:
                message = (
                    f"`{RELEASE if key == 'amiParameter' else key}` means nothing to {machine.name}: it has {own.words}"
                )
                yield Wrong(at("jobs", name, "cluster", key), message, "remove it")


@rule("TY8200", "a script that does not use the machine's accelerators", severity="warning")
def idle_by_script(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    for name, _job, machine, own in _jobs_on_machines(stack):
        scripts = facts.scripts.get(name)
        if scripts is not None and scripts.imports and (message := _script_problem(scripts, machine, own)):
            yield Wrong(at("jobs", name, "code"), message, own.remedy)


def _script_problem(scripts: Scripts, machine: AwsMachine, own: Accelerator) -> str:
    imported = {item.module.partition(".")[0]: item for item in reversed(scripts.imports)}
    cuda = next((call for call in scripts.calls if _asks_for_cuda(call)), None)
    asks = f"{cuda.file}:{cuda.line} asks for CUDA, and " if cuda else ""
    if own.imports and own.imports not in imported:
        return f"{asks}no script imports `{own.imports}`, so the accelerators stay idle and the processors train"
    for other in accelerators().values():
        if other.imports != own.imports and (item := imported.get(other.imports)):
            return (
                f"{item.file}:{item.line} imports `{item.module}` for {other.words}, but {machine.name} has {own.words}"
            )
    if cuda and not machine.accelerators and not any(call.name in _ASKS_FIRST for call in scripts.calls):
        return f"{asks}{machine.name} has {own.words}"
    return ""


def _asks_for_cuda(call: Call) -> bool:
    for row in table("scripts")["cuda"]:
        values = [str(value) for value in (*call.positional, *call.named.values())]
        has_value = any(fnmatchcase(value, pattern) for value in values for pattern in row.get("values", ()))
        if call_matches(call, row["calls"]) and (has_value or "values" not in row):
            return True
    return False


@rule("TY8201", "a compilation that every first step repeats", severity="warning")
def compiles_each_time(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for name, job, machine, own in _jobs_on_machines(stack):
        in_all_runs = job.runs and all(own.cache in run.env for run in job.runs.values())
        if own.cache and own.cache not in job.env and not in_all_runs:
            message = (
                f"the first step on {machine.name} compiles the model, for up to an hour, and nothing keeps the result"
            )
            yield Wrong(at("jobs", name), message, f"add `env: {{ {own.cache}: '${{bucket}}/{name}/compiled' }}`")


@rule("TY8202", "a machine image that was perhaps chosen for other accelerators", severity="warning")
def image_of_other_machines(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    """The id of an image says nothing about its drivers. What else the job names may."""
    for name, job, machine, own in _jobs_on_machines(stack):
        key = "ami" if job.cluster.ami else "amiParameter"
        named = getattr(job.cluster, "ami" if key == "ami" else "ami_parameter")
        other = _accelerator_of_job(job, facts.scripts.get(name, Scripts()), machine, own)
        if other and named and named not in accelerators():
            message = f"`{named}` may have the drivers of {other.words}, as other settings of the job are for these"
            remedy = f"use `ami: {own.name}`, or the id of" if own.ami else "name"
            yield Wrong(at("jobs", name, "cluster", key), message, f"{remedy} an image with the drivers of {own.words}")


def _accelerator_of_job(job: AwsJob, scripts: Scripts, machine: AwsMachine, own: Accelerator) -> Accelerator | None:
    """Other accelerators for which a job was written. None if nothing shows any."""
    imported = {item.module.partition(".")[0] for item in scripts.imports}
    backend = job.options.get("backend")
    for row in accelerators().values():
        of_backend = backend in row.backends and backend not in own.backends
        of_release = bool(row.releases) and job.cluster.release is not None and not own.releases
        of_image = machine.accelerators > 0 and not _named_by_image(job, own) and bool(_named_by_image(job, row))
        if row is not own and (row.imports in imported or of_backend or of_release or of_image):
            return row
    return None
