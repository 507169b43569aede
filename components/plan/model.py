# SPDX-License-Identifier: Apache-2.0
"""The Plan: all that follows from a stack file on every platform, as frozen values that print and compare.

Text in a plan may still hold `${registry}`, `${bucket}` and the platform's own references: a deployment fills them in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

from schemas.model import AccessMode, Code, EnvValue, Input, Layout, NetworkMode, PortRange, Shape, Until

T = TypeVar("T")

Evidence = Literal["measured", "documented", "inferred"]
Who = Literal["users", "runs", "service", "bucket-service"]

SUBNET = "subnet"  # every node of the subnet, whatever its role
SERVICES = "services"  # the platform's own services: object storage, registry, logging
INTERNET = "internet"


@dataclass(frozen=True, slots=True)
class PortRule:
    """Who may reach whom, on what, and why. `ports` None: every port. Roles are written `job/role`.

    `framework` is whose ports they are; None for what no framework asked for.
    """

    source: str
    target: str
    ports: PortRange | None
    why: str
    protocol: Literal["tcp"] = "tcp"
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


@dataclass(frozen=True, slots=True)
class Grant:
    """Who may do what on what: `runs` may `write` `objects`, only in `target`."""

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
    """A set of like nodes: the ports each listens on and how it is started. `called`: by the nodes.

    `carries`: it is there to be used.
    """

    name: str
    called: str
    replicas: int
    mode: str
    ports: Mapping[str, PortRange | None]
    minimum_success: int
    carries: bool = True


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One node (or, in node groups, one group of like nodes): what it is told."""

    name: str
    role: str
    rank: int
    environment: Mapping[str, EnvValue]
    launch: Mapping[str, Any]
    replicas: int = 1
    minimum_success: int = 1


@dataclass(frozen=True, slots=True)
class RunPlan:
    name: str
    was: tuple[str, ...]
    display_name: str
    attempt: int
    until: Until
    nodes: tuple[NodePlan, ...]


@dataclass(frozen=True, slots=True)
class JobPlan:
    """`ranks` tells people how nodes find their rank and one another; what does it is the launcher.

    `called` is the oldest of its names: where another name would need another job, it keeps that.
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
    inputs: tuple[Input, ...]
    block_storage_gb: int
    maximum_runtime_minutes: int
    stall_minutes: int  # 0: nobody watches whether it stalls
    runs: Mapping[str, RunPlan]

    @property
    def nodes(self) -> int:
        return sum(role.replicas for role in self.roles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one platform only has is in its own Plan (components/<platform>/plan.py), which has these columns too."""

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
    jobs: Mapping[str, JobPlan] = field(default_factory=dict)


def extend(kind: Callable[..., T], base: Any, **columns: Any) -> T:
    """A platform's own kind of plan: what the neutral one says, and the columns that it has on top."""
    return kind(**{column.name: getattr(base, column.name) for column in fields(base)} | columns)
