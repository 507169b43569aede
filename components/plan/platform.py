# SPDX-License-Identifier: Apache-2.0
"""What each platform has for its plans: capabilities, each in a module of the platform's home."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from catalog.platforms import Capability

if TYPE_CHECKING:
    from components.plan.launch import RolePart
    from components.plan.model import Plan
    from components.plan.ports import ResolvedJob
    from schemas.model import Layout, Run

Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """How nodes find one another: its name in the launch document, and a text for people."""

    source: str
    words: str


@dataclass(frozen=True, slots=True)
class Words:
    """The rows of `trainyard plan` in the platform's own words. Each row has a title and a text."""

    place: Sequence[Row]
    principals: Sequence[Row]
    # The network's place, and what its nodes can reach.
    network: Sequence[Row]
    # After bucket and repository.
    storage: Sequence[Row]
    # Of each job, by its name: the machines in the platform's own words.
    jobs: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    # Which of `bucket`, `registry` and `block storage` a stack does not have.
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RulePlace:
    """Where a rule between nodes is added, in words: `security list demo-rules of subnet 10.20.0.0/24`. `peer`: whose
    connections it lets through."""

    words: str
    peer: str


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """What each node of some roles has, as far as the launcher tests it (launcher/expects.py). 0 and empty: the plan
    does not say. `device_gb`: the memory of each of its devices."""

    roles: tuple[str, ...]
    devices: int = 0
    kind: str = ""
    device_gb: float = 0
    disk_gb: float = 0
    shm_mb: float = 0
    transport: str = ""


class AccessReport(Protocol):
    """The report of `trainyard access`: plain values as JSON, and a text."""

    def text(self) -> str: ...


def _no_environments_of_platform(
    job: ResolvedJob, part: RolePart, names: Mapping[str, str], run: Run, ranks: range
) -> Iterator[Mapping[str, str]]:
    return repeat({}, len(ranks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning(Capability):
    """How a platform lowers a plan. Only what has no default is needed."""

    place = "plan.PLANNING"
    # How nodes reach bucket, registry and logs: `through the service gateway`.
    way_to_services: str
    # The plan with this platform's own fields, from its own Stack.
    lower: Callable[[Any, Plan, Mapping[str, ResolvedJob]], Plan]
    rendezvous: Callable[[Layout], Rendezvous]
    # The platform's own plan in words.
    words: Callable[[Any], Words]
    # Words under `when` in catalog/access.toml that hold because of this platform, by its own Stack.
    circumstances: Callable[[Any], frozenset[str]] = lambda stack: frozenset()
    # Variables of each node of a role, in addition to its launch document: images of this platform read them.
    environments: Callable[[ResolvedJob, RolePart, Mapping[str, str], Run, range], Iterator[Mapping[str, str]]] = (
        _no_environments_of_platform
    )
    # The same for the layout `node-groups`, in which all nodes of a role have the same variables.
    group_environment: Callable[[ResolvedJob], Mapping[str, str]] = lambda job: {}
    # Where rules between a job's nodes are, by the platform's own Stack and Job. None: there are no such rules.
    rule_place: Callable[[Any, Any], RulePlace | None] = lambda stack, job: None
    # What nodes have, by the platform's own Stack and Job, as far as the launcher is to test it.
    planned_nodes: Callable[[Any, ResolvedJob], Iterable[PlannedNode]] = lambda stack, job: ()
    # Whether launch documents name the code repository. Otherwise, the platform has another way.
    names_code: bool = True
    # Whether runs of one job can train at the same time. Otherwise, they wait for one another.
    runs_at_once: bool = True


@dataclass(frozen=True, slots=True)
class AccessReporting(Capability):
    """Makes the report of a plan, for the group that runs `pulumi up`. Raises ValueError if the platform does not allow
    that name."""

    place = "access_report.ACCESS_REPORTING"
    build: Callable[[Any, str], AccessReport]


@dataclass(frozen=True, slots=True)
class Deployment(Capability):
    """Makes every resource in a Pulumi program, with the stack file's folder, and returns the outputs of the stack."""

    place = "resources.deploy.DEPLOYMENT"
    lacking = "{platform} is only planned: its row in catalog/platforms.toml says so"
    error = NotImplementedError
    deploy: Callable[[Any, Path], dict[str, Any]]
