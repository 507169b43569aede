# SPDX-License-Identifier: Apache-2.0
"""Checks of ports, driven by the framework's rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from catalog.frameworks import PortRow
from schemas.facts import Facts
from schemas.findings import Wrong, at, rule
from schemas.job_on_platform import JobOnPlatform
from schemas.model import PortRange, Stack
from schemas.name_suggestions import suggest_name

# Linux uses ports of this range for outgoing connections by default.
EPHEMERAL = PortRange(32768, 60999)
PRIVILEGED = 1024


def _jobs_on_platform(stack: Stack, facts: Facts) -> Iterator[tuple[str, JobOnPlatform]]:
    """The jobs whose framework is known."""
    return ((name, JobOnPlatform.of(stack, job, framework)) for name, job, framework in facts.known_jobs(stack))


def _written_ranges(stack: Stack, facts: Facts) -> Iterator[tuple[tuple[str | int, ...], PortRow, PortRange]]:
    """Every port range in the file, with a label that the framework has. Empty if the platform chooses all ports: then
    numbers in the file have no effect."""
    for name, job in [] if stack.reserves_ports else _jobs_on_platform(stack, facts):
        for label, value in job.spec.ports.items():
            port = job.framework.port(label)
            if port is not None and isinstance(value, PortRange):
                yield at("jobs", name, "ports", label), port, value


@rule("TY201", "an unknown port label")
def unknown_label(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        labels = [port.label for port in framework.ports]
        for label in job.ports:
            if label not in labels:
                message = f"{framework.name} has no port `{label}`"
                yield Wrong(at("jobs", name, "ports", label), message, suggest_name(label, labels))


@rule("TY202", "a port range is too small")
def range_too_small(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in _jobs_on_platform(stack, facts):
        for port, ports in job.numbered():
            if ports.last < ports.first:
                continue
            for_node = job.options.get(port.per_node) if port.per_node else 1
            needed = max(port.minimum_size, for_node) if type(for_node) is int else port.minimum_size
            if ports.size < needed:
                where = ("ports", port.label) if port.label in job.spec.ports else ("options", port.per_node or "")
                because = f"{needed} for each node" if port.per_node and for_node == needed else f"at least {needed}"
                message = f"the range {ports} of `{port.label}` has {ports.size} ports; {because} are needed"
                remedy = f"set `ports: {{ {port.label}: {ports.first}-{ports.first + needed - 1} }}` or larger"
                yield Wrong(at("jobs", name, *where), message, remedy)


@rule("TY203", "a privileged port")
def privileged_port(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for path, _, ports in _written_ranges(stack, facts):
        if 0 < ports.first < PRIVILEGED:
            message = f"{ports} begins below {PRIVILEGED}, which only root may use; training does not run as root"
            yield Wrong(path, message, f"use ports from {PRIVILEGED} on")


@rule("TY204", "an invalid port range")
def invalid_range(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for label, ports in job.ports.items():
            if not isinstance(ports, PortRange):
                continue
            if ports.last < ports.first:
                remedy = f"write {ports.last}-{ports.first}"
                yield Wrong(at("jobs", name, "ports", label), f"{ports} ends before it begins", remedy)
            elif ports.first < 1 or ports.last > 65535:
                yield Wrong(
                    at("jobs", name, "ports", label), f"{ports} is outside 1-65535", "use ports from 1 to 65535"
                )


@rule("TY205", "two port ranges of a job overlap on one node")
def overlapping_ranges(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in _jobs_on_platform(stack, facts):
        for (first_port, first), (second_port, second) in combinations(job.numbered(), 2):
            shared = set(first_port.listens) & set(second_port.listens)
            if shared and first.overlaps(second):
                label = second_port.label if second_port.label in job.spec.ports else first_port.label
                message = (
                    f"`{first_port.label}` ({first}) and `{second_port.label}` ({second}) overlap "
                    f"on the node of `{sorted(shared)[0]}`"
                )
                yield Wrong(at("jobs", name, "ports", label), message, "move one of them to ports of its own")


@rule("TY206", "ports of frameworks that share a subnet overlap", severity="warning")
def colliding_frameworks(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    """The rules hold for the whole subnet: a port opened for one framework is also open on the other's nodes."""
    seen: set[str] = set()
    numbered = [(name, job.framework, tuple(job.numbered())) for name, job in _jobs_on_platform(stack, facts)]
    for (name, first, ports_of_first), (_, second, ports_of_second) in combinations(numbered, 2):
        if first.name == second.name:
            continue
        overlaps = [
            (
                port.label,
                f"`{port.label}` of {first.name} ({ports}) overlaps `{other_port.label}` of {second.name} ({others})",
            )
            for port, ports in ports_of_first
            for other_port, others in ports_of_second
            if ports.overlaps(others)
        ]
        # One finding for two frameworks, however many of their ports overlap.
        overlapping = "; ".join(text for _, text in overlaps)
        if not overlaps or overlapping in seen:
            continue
        seen.add(overlapping)
        message = f"{overlapping}: the subnet's rules would open each to the other's nodes"
        yield Wrong(at("jobs", name, "ports", overlaps[0][0]), message, "give one of them other ports")


@rule("TY207", "a listening port that outgoing connections may take", severity="warning")
def ephemeral_port(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for path, port, ports in _written_ranges(stack, facts):
        if port.pinned == "start-option" and ports.overlaps(EPHEMERAL):
            message = f"{ports} is in {EPHEMERAL}, which Linux uses for outgoing connections: it may be in use already"
            yield Wrong(path, message, f"use ports below {EPHEMERAL.first}")


@rule("TY208", "a port that nothing uses", severity="warning")
def unused_port(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in _jobs_on_platform(stack, facts):
        for label in job.spec.ports:
            port = job.framework.port(label)
            if port is not None and not job.is_active(port):
                message = f"`{label}` is not used: the option `{port.when}` is off"
                yield Wrong(
                    at("jobs", name, "ports", label), message, f"set `options: {{ {port.when}: true }}`, or remove it"
                )


@rule("TY209", "a dashboard is open", severity="warning")
def open_dashboard(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, _ in facts.known_jobs(stack):
        if job.options.get("dashboard") is True:
            message = "the dashboard has no login: everybody on the subnet can see it"
            yield Wrong(at("jobs", name, "options", "dashboard"), message, "turn it off if nobody uses it")


@rule("TY210", "all ports where one range is needed")
def needs_one_range(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in [] if stack.reserves_ports else _jobs_on_platform(stack, facts):
        for label, value in job.spec.ports.items():
            port = job.framework.port(label)
            if port is not None and value == "all" and port.pinned == "start-option" and port.default != "all":
                message = f"{job.framework.name} needs to know `{label}` when it starts, so it cannot be `all`"
                yield Wrong(at("jobs", name, "ports", label), message, f"name a port or range, such as {port.default}")


@rule("TY211", "a range where one port is needed")
def needs_one_port(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for path, port, ports in _written_ranges(stack, facts):
        single = isinstance(port.default, int) and port.per_node is None and port.minimum_size == 1
        if single and ports.size > 1:
            message = f"`{port.label}` is one port, but {ports} has {ports.size}"
            yield Wrong(path, message, f"use `{port.label}: {ports.first}`")
