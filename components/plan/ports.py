# SPDX-License-Identifier: Apache-2.0
"""Which node must reach which, on what port, and why."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterator, Mapping

from catalog.frameworks import Framework, PortRow
from components.plan.model import INTERNET, SERVICES, SUBNET, NetworkPlan, PortRule
from schemas.addresses import RESERVED_ADDRESSES, addresses_needed
from schemas.cloning import inside_oci, port_of
from schemas.model import Job, PortRange, Stack

SMALLEST_DEFAULT_SUBNET = 24
HTTPS = PortRange(443, 443)
OPEN = "proof of concept: all TCP in and out of the subnet"


def active(row: PortRow, options: Mapping[str, object]) -> bool:
    """Whether the job uses this port at all."""
    return row.when is None or bool(options.get(row.when))


def options_of(framework: Framework, job: Job) -> dict[str, bool | int | float | str]:
    """The options of the framework with the job's own on top."""
    return {**{name: row.default for name, row in framework.options.items()}, **job.options}


def chosen(row: PortRow, job: Job) -> PortRange | None:
    """The port or range of a row in this job; None for every port."""
    value = job.ports.get(row.label)
    if value is None:
        return _default(row)
    return None if value == "all" else value


def _default(row: PortRow) -> PortRange | None:
    return None if row.default == "all" else PortRange.from_shorthand(row.default)


def of_role(framework: Framework, job: Job, role: str) -> dict[str, PortRange | None]:
    """The ports one role listens on, by label."""
    options = options_of(framework, job)
    return {row.label: chosen(row, job) for row in framework.ports if role in row.listens and active(row, options)}


def subnet_cidr(stack: Stack) -> str:
    """The subnet as written, or the first part of the network that is large enough."""
    network = stack.network
    if network.subnet_cidr:
        return network.subnet_cidr
    whole = ipaddress.ip_network(network.cidr, strict=False)
    needed = 32 - math.ceil(math.log2(addresses_needed(stack) + RESERVED_ADDRESSES))
    prefix = max(whole.prefixlen, min(SMALLEST_DEFAULT_SUBNET, needed))
    return str(next(iter(whole.subnets(new_prefix=prefix))))


def network_plan(stack: Stack, frameworks: Mapping[str, Framework], opened: Mapping[str, Framework]) -> NetworkPlan:
    """`frameworks` by job; `opened` those the network is opened for without a job of this stack."""
    network = stack.network
    return NetworkPlan(
        mode=network.mode,
        create=_is_made(stack),
        cidr=network.cidr,
        subnet_cidr=subnet_cidr(stack),
        nat=network.nat,
        vcn=network.vcn,
        subnet=network.subnet,
        route_table=network.route_table,
        compartment=network.compartment,
        rules=tuple(dict.fromkeys(_rules(stack, frameworks, opened))),
    )


def _is_made(stack: Stack) -> bool:
    taken = stack.uses is not None and "network" in stack.uses.take
    return not (stack.network.subnet or taken)


def _rules(stack: Stack, frameworks: Mapping[str, Framework], opened: Mapping[str, Framework]) -> Iterator[PortRule]:
    match stack.network.mode:
        case "proof-of-concept":
            yield PortRule(SUBNET, SUBNET, None, OPEN)
        case "documented":
            for name, framework in frameworks.items():
                yield from _documented(name, framework, stack.jobs[name])
            for name, framework in opened.items():
                yield from _documented(name, framework, None)
        case _:
            for name, framework in frameworks.items():
                yield from _least(name, framework, stack.jobs[name])
            for name, framework in opened.items():
                yield from _opened(name, framework)
    yield from _outward(stack)


def _outward(stack: Stack) -> Iterator[PortRule]:
    """Answers come back by themselves: every rule is stateful."""
    if stack.network.mode == "proof-of-concept":
        yield PortRule(SUBNET, SERVICES, None, OPEN)
        if stack.network.nat:
            yield PortRule(SUBNET, INTERNET, None, OPEN)
        return
    yield PortRule(SUBNET, SERVICES, HTTPS, "bucket, registry and logs, through the service gateway")
    if stack.network.nat:
        yield PortRule(SUBNET, INTERNET, HTTPS, "code, packages and images from outside, through NAT")
    for name, job in stack.jobs.items():
        if job.code and job.code.git:
            yield from _clone(stack, name, job.code.git.url)


def _clone(stack: Stack, job: str, url: str) -> Iterator[PortRule]:
    """Where code comes from git by another way than what is open already."""
    target, port = (SERVICES if inside_oci(url) else INTERNET), port_of(url)
    there_is_a_way = target == SERVICES or stack.network.nat or not _is_made(stack)
    is_open = port == HTTPS.first and (target == SERVICES or stack.network.nat)
    if there_is_a_way and not is_open:
        yield PortRule(SUBNET, target, PortRange(port, port), f"the code of {job} is cloned from git")


def _least(name: str, framework: Framework, job: Job) -> Iterator[PortRule]:
    """Only between roles that are there. A role reaches itself only when it has a second node."""
    options = options_of(framework, job)
    alive = {role: spec.replicas for role, spec in job.roles.items() if spec.replicas}
    for row in framework.ports:
        if not active(row, options):
            continue
        for target in row.listens:
            for source in row.reached_from:
                if source in alive and target in alive and (source != target or alive[source] > 1):
                    yield PortRule(
                        f"{name}/{source}",
                        f"{name}/{target}",
                        chosen(row, job),
                        row.why,
                        evidence=row.evidence,
                        framework=job.framework,
                    )


def _opened(name: str, framework: Framework) -> Iterator[PortRule]:
    """For jobs of other stacks: what the framework's own defaults need."""
    defaults = {label: option.default for label, option in framework.options.items()}
    for row in framework.ports:
        if active(row, defaults):
            ports = _default(row)
            yield PortRule(SUBNET, SUBNET, ports, f"{name}: {row.why}", evidence=row.evidence, framework=name)


def _documented(name: str, framework: Framework, job: Job | None) -> Iterator[PortRule]:
    """The documents' ports, whatever the options. A framework that they do not name has what it needs."""
    if not any(row.documented for row in framework.ports):
        yield from _least(name, framework, job) if job else _opened(name, framework)
        return
    ports = {row.label: chosen(row, job) if job else _default(row) for row in framework.ports}
    # Where the documents open every port and the job names a few, the others it listens on are not among them.
    few = any(row.documented and row.default == "all" and ports[row.label] for row in framework.ports)
    options = options_of(framework, job) if job else {}
    for row in framework.ports:
        if row.documented or (few and active(row, options)):
            evidence = "documented" if row.documented else row.evidence
            why = f"{framework.name}: {row.why}"
            yield PortRule(SUBNET, SUBNET, ports[row.label], why, evidence=evidence, framework=framework.name)
