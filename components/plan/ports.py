# SPDX-License-Identifier: Apache-2.0
"""Which nodes must reach which other nodes, on what port, and why."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from catalog.frameworks import Framework, PortRow
from components.plan.model import INTERNET, SERVICES, SUBNET, NetworkPlan, PackagesPlan, PortRule
from schemas.each import addresses_needed
from schemas.job_code import git_host, git_port
from schemas.job_on_platform import JobOnPlatform, default_ports, is_active
from schemas.model import PortRange, Stack

SMALLEST_DEFAULT_SUBNET = 24
HTTPS = PortRange(443, 443)
OPEN = "proof of concept: all TCP in and out of the subnet"


@dataclass(frozen=True, kw_only=True)
class ResolvedJob(JobOnPlatform):
    name: str
    packages: PackagesPlan | None = None

    def listens_on(self, role: str) -> dict[str, PortRange | None]:
        """The ports one role listens on, by label."""
        return {row.label: self.ports_of(row) for row in self.active_ports() if role in row.listens}

    def active_ports(self) -> Iterator[PortRow]:
        """The ports on which a node listens. If an option is off, its program may still get a port, which it needs if
        nodes share the network of their hosts."""
        return (row for row in self.framework.ports if self.is_active(row) or self._is_reserved_argument(row))

    def _is_reserved_argument(self, row: PortRow) -> bool:
        words = (word for role in self.framework.roles.values() for word in role.start)
        return self.is_reserved(row) and any(f"{{port.{row.label}}}" in word for word in words)

    def called(self, role: str) -> str:
        """The role's name on the nodes: a renamed role keeps its oldest name there."""
        return self.spec.roles[role].was.first(role) if role in self.spec.roles else role

    @property
    def roles(self) -> list[str]:
        """Roles with nodes, in the framework's order, the main role first. Ranks follow this order."""
        return [role for role in self.framework.roles if role in self.spec.roles and self.spec.roles[role].replicas]


def subnet_cidr(stack: Stack) -> str:
    """The subnet from the file, or the first part of the network that is large enough."""
    network = stack.network
    if network.subnet_cidr:
        return network.subnet_cidr
    whole = ipaddress.ip_network(network.cidr, strict=False)
    addresses = max(1, addresses_needed(stack) + network.reserved_addresses)
    needed = 32 - math.ceil(math.log2(addresses))
    prefix = max(whole.prefixlen, min(SMALLEST_DEFAULT_SUBNET, needed))
    return str(next(iter(whole.subnets(new_prefix=prefix))))


def network_plan(
    stack: Stack, jobs: Mapping[str, ResolvedJob], opened: Mapping[str, Framework], services: str
) -> NetworkPlan:
    """`opened`: frameworks without a job here whose ports are open too. `services`: how nodes reach the platform's
    services."""
    network = stack.network
    return NetworkPlan(
        mode=network.mode,
        create=stack.makes("network"),
        cidr=network.cidr,
        subnet_cidr=subnet_cidr(stack),
        nat=network.nat,
        subnet=network.subnet,
        rules=tuple(dict.fromkeys((*_rules_between_nodes(stack, jobs, opened), *_outgoing_rules(stack, services)))),
        frameworks=tuple(opened),
    )


def _rules_between_nodes(
    stack: Stack, jobs: Mapping[str, ResolvedJob], opened: Mapping[str, Framework]
) -> Iterator[PortRule]:
    match stack.network.mode:
        case "proof-of-concept":
            yield PortRule(SUBNET, SUBNET, None, OPEN)
        case "documented":
            for job in jobs.values():
                yield from _documented_rules(job)
            for name, framework in opened.items():
                documented = [row for row in framework.ports if row.documented]
                yield from (_rule_for_whole_subnet(framework, row, default_ports(row)) for row in documented)
                if not documented:
                    yield from _rules_of_opened_framework(name, framework)
        case _:
            for job in jobs.values():
                yield from _least_rules(job)
            for name, framework in opened.items():
                yield from _rules_of_opened_framework(name, framework)


def _outgoing_rules(stack: Stack, services: str) -> Iterator[PortRule]:
    """Rules for outgoing connections. All rules are stateful, so answers need no rule."""
    if stack.network.mode == "proof-of-concept":
        yield PortRule(SUBNET, SERVICES, None, OPEN)
        if stack.network.nat:
            yield PortRule(SUBNET, INTERNET, None, OPEN)
        return
    yield PortRule(SUBNET, SERVICES, HTTPS, f"bucket, registry and logs, {services}")
    if stack.network.nat:
        yield PortRule(SUBNET, INTERNET, HTTPS, "code, packages and images from outside, through NAT")
    for name, job in stack.jobs.items():
        if job.code and job.code.git:
            url = job.code.git.url
            target, port = (SERVICES if stack.is_inside(git_host(url)) else INTERNET), git_port(url)
            has_way = target == SERVICES or stack.network.nat or not stack.makes("network")
            is_open = port == HTTPS.first and (target == SERVICES or stack.network.nat)
            if has_way and not is_open:
                yield PortRule(SUBNET, target, PortRange(port, port), f"the code of {name} is cloned from git")


def connecting_roles(job: ResolvedJob) -> Iterator[tuple[PortRow, str, str]]:
    """Which role connects to which on which port, only between roles that have nodes. A role reaches itself only if it
    has a second node."""
    alive = {role: spec.replicas for role, spec in job.spec.roles.items() if spec.replicas}
    for row in job.active_ports():
        for target in row.listens:
            for source in row.reached_from:
                if source in alive and target in alive and (source != target or alive[source] > 1):
                    yield row, source, target


def _least_rules(job: ResolvedJob) -> Iterator[PortRule]:
    for row, source, target in connecting_roles(job):
        yield PortRule(
            f"{job.name}/{source}",
            f"{job.name}/{target}",
            job.ports_of(row),
            row.why,
            row.protocol,
            evidence=row.evidence,
            framework=job.spec.framework,
        )


def _rules_of_opened_framework(name: str, framework: Framework) -> Iterator[PortRule]:
    """Rules for jobs of other stacks: the ports that the framework needs by default."""
    defaults = {label: option.default for label, option in framework.options.items()}
    for row in framework.ports:
        if is_active(row, defaults):
            ports = default_ports(row)
            why = f"{name}: {row.why}"
            yield PortRule(SUBNET, SUBNET, ports, why, row.protocol, row.evidence, name)


def _documented_rules(job: ResolvedJob) -> Iterator[PortRule]:
    """The ports in the platform's documents, for any options. A framework that they do not name gets the ports that it
    needs."""
    framework = job.framework
    if not any(row.documented for row in framework.ports):
        yield from _least_rules(job)
        return
    ports = {row.label: job.ports_of(row) for row in framework.ports}
    # If the documents open every port, but the job names a few, the other ports that it needs are opened too.
    few = any(row.documented and row.default == "all" and ports[row.label] for row in framework.ports)
    for row in framework.ports:
        if row.documented or (few and job.is_active(row)):
            yield _rule_for_whole_subnet(framework, row, ports[row.label])


def _rule_for_whole_subnet(framework: Framework, row: PortRow, ports: PortRange | None) -> PortRule:
    evidence = "documented" if row.documented else row.evidence
    why = f"{framework.name}: {row.why}"
    return PortRule(SUBNET, SUBNET, ports, why, row.protocol, evidence, framework.name)
