# SPDX-License-Identifier: Apache-2.0
"""The jobs of a stack, as its resources tell of them: how many nodes and accelerators, for how long, on what ports.

A run tells what its nodes do (`TRAINYARD_LAUNCH`). A job that has no run yet tells it in one tag, `launch`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.machines import most_retries
from policies.protocol import RUN
from policies.rule import JudgedResource, JudgedStack

JOB = "oci:DataScience/job:Job"
INSTANCE = "aws:ec2/instance:Instance"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
TYPES = (RUN, JOB, INSTANCE, TEMPLATE)
# What every resource of a job names.
JOB_TAG = "job"
# `nodes=4 ports=29400,29500-29563` on a job without runs; `ports=all` for every one.
LAUNCH_TAG = "launch"
LAUNCH_VARIABLE = "TRAINYARD_LAUNCH"
EVERY_PORT = (0, 65535)
_WORD = re.compile(r"(nodes|ports)=(\S*)")

Ports = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PolicyJob:
    """What belongs to one job. `resource` is what a verdict on it names."""

    name: str
    runs: tuple[JudgedResource, ...]
    job: JudgedResource | None
    machines: tuple[JudgedResource, ...]
    template: JudgedResource | None

    @property
    def resource(self) -> JudgedResource | None:
        return next(iter((*filter(None, (self.job, self.template)), *self.runs, *self.machines)), None)


def jobs_of(stack: JudgedStack) -> tuple[PolicyJob, ...]:
    """The jobs by the tag that names them. NotKnownError where nobody knows whose a resource is."""
    by_name: dict[str, list[JudgedResource]] = {}
    for resource in stack.of(*TYPES):
        named = resource.tags.get(JOB_TAG) or resource.name.partition("/")[0]
        by_name.setdefault(str(named), []).append(resource)
    return tuple(_job(name, of_it) for name, of_it in by_name.items())


def _job(name: str, of_it: Iterable[JudgedResource]) -> PolicyJob:
    by_type: dict[str, list[JudgedResource]] = {kind: [] for kind in TYPES}
    for resource in of_it:
        by_type[resource.type].append(resource)
    job, template = (next(iter(by_type[kind]), None) for kind in (JOB, TEMPLATE))
    return PolicyJob(name, tuple(by_type[RUN]), job, tuple(by_type[INSTANCE]), template)


def nodes_of_run(run: JudgedResource) -> int:
    return sum(int(node.get("replicas") or 1) for node in run.properties.get("nodes") or ())


def documents_of(run: JudgedResource) -> Iterator[Mapping[str, Any]]:
    """What each node of a run is told. NotKnownError where that waits for another resource."""
    for node in run.properties.get("nodes") or ():
        text = (node.get("environment") or {}).get(LAUNCH_VARIABLE)
        if text is not None:
            yield json.loads(str(text))


def retries_of(run: JudgedResource) -> int:
    """How often the node that is tried most is tried again. Negative: without limit."""
    protocol = run.properties.get("protocol") or {}
    counts = [int(protocol.get("jobRetryCount") or 0)]
    counts += [int(role.get("taskRetryCount") or 0) for role in (protocol.get("taskRoles") or {}).values()]
    counts += [int((document.get("retry") or {}).get("count") or 0) for document in documents_of(run)]
    return most_retries(counts)


def ports_of_run(run: JudgedResource) -> Iterator[Ports]:
    for document in documents_of(run):
        for port in (document.get("ports") or {}).values():
            first, last = port.get("range") or EVERY_PORT
            yield int(first), int(last)


def launch_tag(job: JudgedResource) -> Mapping[str, str]:
    """What the tag of a job says; nothing where it has none."""
    return dict(_WORD.findall(str(job.tags.get(LAUNCH_TAG) or "")))


def ports_of_tag(said: str) -> Iterator[Ports]:
    for part in said.split(",") if said else ():
        first, _, last = part.partition("-")
        yield EVERY_PORT if part == "all" else (int(first), int(last or first))
