# SPDX-License-Identifier: Apache-2.0
"""The Plan: everything that follows from a stack file on every platform, as frozen values.

Text in a plan may still hold `${registry}`, `${bucket}` and the platform's own references: a deployment fills them in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

from schemas.model import AccessMode, Code, EnvValue, Input, Layout, NetworkMode, PortRange, Shape, Stack, Until, Waiver

T = TypeVar("T")
P = TypeVar("P", bound="Plan")
J = TypeVar("J", bound="JobPlan")

Evidence = Literal["measured", "documented", "inferred"]
Who = Literal["users", "runs", "service", "bucket-service"]

SUBNET = "subnet"  # all nodes of the subnet, of any role
SERVICES = "services"  # the platform's own services: object storage, registry, logging
INTERNET = "internet"
# The type of a run in Pulumi's state, for code that reads states without Pulumi's SDK.
RUN_TYPE = "trainyard:index:Run"
REFERENCE = re.compile(r"\$\{([A-Za-z][A-Za-z0-9.-]*)\}")


@dataclass(frozen=True, slots=True)
class PortRule:
    """Which role may reach which, on what ports, and why. `ports`: None for every port. Roles are written `job/role`.

    `framework`: the framework that needs the ports, or None.
    """

    source: str
    target: str
    ports: PortRange | None
    why: str
    protocol: Literal["tcp", "udp"] = "tcp"
    evidence: Evidence = "documented"
    framework: str | None = None


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    mode: NetworkMode
    create: bool
    cidr: str
    subnet_cidr: str
    nat: bool
    subnet: str | None
    rules: tuple[PortRule, ...]
    # Frameworks whose jobs are in other stacks, and whose ports are open here.
    frameworks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """A permission, such as: `runs` may `write` `objects`, only in `target`."""

    who: Who
    does: str
    what: str
    why: str
    target: str | None = None


@dataclass(frozen=True, slots=True)
class AccessPlan:
    mode: AccessMode
    create: bool
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class BucketPlan:
    name: str
    create: bool
    versioning: Literal[True, False, "suspended"]
    key: str | None
    keep: bool


@dataclass(frozen=True, slots=True)
class RegistryPlan:
    repository: str
    create: bool
    immutable: bool
    keep: bool


@dataclass(frozen=True, slots=True)
class LogsPlan:
    enabled: bool
    create: bool
    group_name: str
    log_name: str
    retention_days: int


@dataclass(frozen=True, slots=True)
class RolePlan:
    """A set of equal nodes: the ports that each listens on, and how it is started.

    `called` is the role's name on the nodes. `carries` is false for a role that only watches training.
    """

    name: str
    called: str
    replicas: int
    mode: str
    ports: Mapping[str, PortRange | None]
    minimum_success: int
    carries: bool = True
    # Labels of ports whose numbers the platform chooses.
    reserved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One node (in node groups: one group of equal nodes), with its environment and launch document."""

    name: str
    role: str
    rank: int
    environment: Mapping[str, EnvValue]
    launch: Mapping[str, Any]
    replicas: int = 1
    minimum_success: int = 1


@dataclass(frozen=True, slots=True)
class Turns:
    """A run starts while fewer than `at_most` others are alive whose names begin with `names`."""

    at_most: int
    names: str


@dataclass(frozen=True, slots=True)
class RunPlan:
    name: str
    was: tuple[str, ...]
    display_name: str
    attempt: int
    until: Until
    nodes: tuple[NodePlan, ...]
    turns: Turns | None = None

    @property
    def turn_inputs(self) -> dict[str, Any]:
        """The run's input for the runs that it waits for. Empty if its sweep has no limit, so that inputs stay as in
        earlier releases."""
        return {"turns": {"atMost": self.turns.at_most, "names": self.turns.names}} if self.turns else {}


@dataclass(frozen=True, slots=True)
class PackagesPlan:
    """The packages that a job needs in addition to its framework. pip gets `text`, and never the team's file itself.

    `digest`: the name of these packages in launch documents, and of local environments. `places`: for each line of the
    text, its place in the team's files, or "" for a line of ours.
    """

    file: str
    lines: tuple[str, ...]
    places: tuple[str, ...]
    build: tuple[str, ...]
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class JobPlan:
    """`ranks`: a text for people about how nodes find their rank and one another. The launcher does it.

    `called`: its oldest name, which is used where a new name would mean another job.
    """

    name: str
    was: tuple[str, ...]
    called: str
    display_name: str
    framework: str
    strategy: str | None
    ranks: str
    layout: Layout
    image: str
    image_is_ours: bool
    shape: Shape
    roles: tuple[RolePlan, ...]
    code: Code | None
    packages: PackagesPlan | None
    inputs: tuple[Input, ...]
    # 0 where nodes have none of their own.
    block_storage_gb: int
    maximum_runtime_minutes: int
    stall_minutes: int  # 0: nothing watches for stalls
    # What the launcher tests before training (components/plan/expects.py).
    expects: Mapping[str, Any]
    keep: tuple[str, ...]
    runs: Mapping[str, RunPlan]

    @property
    def nodes(self) -> int:
        return sum(role.replicas for role in self.roles)

    @property
    def by_shell(self) -> bool:
        """Whether its commands run as they are written, without any preparation. So do scripts of other systems."""
        return any("speaks" in node.launch for run in self.runs.values() for node in run.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Each platform adds its own columns to these in a Plan of its own (components/<platform>/plan.py)."""

    stack: str
    team: str
    environment: str
    platform: str
    region: str
    tags: Mapping[str, str]
    network: NetworkPlan
    access: AccessPlan
    bucket: BucketPlan
    registry: RegistryPlan
    logs: LogsPlan
    uses: str | None
    taken: tuple[str, ...]
    waivers: Mapping[str, Waiver] = field(default_factory=dict)
    jobs: Mapping[str, JobPlan] = field(default_factory=dict)


def extend_plan(kind: Callable[..., T], base: Any, **columns: Any) -> T:
    """A platform's own plan: the fields of the neutral one, and its additional ones."""
    return kind(**{column.name: getattr(base, column.name) for column in fields(base)} | columns)


def plan_as(kind: type[P], plan: Plan) -> P:
    """The same plan with a platform's own type. Raises TypeError if it is of another platform."""
    if not isinstance(plan, kind):
        raise TypeError(f"{plan.stack} runs on {plan.platform}")
    return plan


def job_as(kind: type[J], job: JobPlan) -> J:
    """The same job with a platform's own type. Raises TypeError if it is of another platform."""
    if not isinstance(job, kind):
        raise TypeError(f"{job.name} is a job of another platform")
    return job


def stack_tags(stack: Stack) -> dict[str, str]:
    """The tags of every resource, so that people and bills can tell to whom it belongs."""
    ours = {"stack": stack.name, "team": stack.team, "environment": stack.environment, "managed-by": "trainyard"}
    return {**stack.tags, **ours}


def plan_references(stack: Stack, job: str = "", run: str = "") -> dict[str, str]:
    """The references whose values the plan itself has."""
    values = {
        "team": stack.team,
        "environment": stack.environment,
        "stack": stack.name,
        "region": stack.region,
        "job": job,
        "run": run,
    }
    return {name: value for name, value in values.items() if value}


def expand_references(text: str, values: Mapping[str, str]) -> str:
    """`text` with its references filled in. Those whose values only the platform has are left."""
    return REFERENCE.sub(lambda match: values.get(match[1], match[0]), text)
