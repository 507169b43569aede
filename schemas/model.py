# SPDX-License-Identifier: Apache-2.0
"""What a team wrote, as frozen values: the Stack.

Field names are the keys of the stack file in snake_case; `schemas/convert.py` goes both ways by these types alone,
so a key is described in two places only: here and in stack.schema.json (a contract test holds them together).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeVar

K = TypeVar("K")
V = TypeVar("V")

NOTHING: Mapping[str, Any] = MappingProxyType({})

AccessMode = Literal["least-privilege", "documented", "proof-of-concept"]
NetworkMode = Literal["least", "documented", "proof-of-concept"]
Layout = Literal["run-per-node", "node-groups"]
Until = Literal["accepted", "started", "finished"]
# A gang of nodes that does nothing for so long is ended; what the launcher does where nothing else is said.
STALL_MINUTES = 30
Concern = Literal["network", "access", "bucket", "registry", "logs", "project"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A `secure:` value. The file door cannot decrypt it, so two secrets are equal wherever both stand."""

    value: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PortRange:
    """`8786` or `8700-8800` in the file."""

    first: int
    last: int

    @classmethod
    def from_shorthand(cls, value: int | str) -> PortRange:
        # Dask writes its ranges with a colon; both are read.
        first, _, last = str(value).replace(":", "-").partition("-")
        return cls(int(first), int(last or first))

    def to_shorthand(self) -> int | str:
        return self.first if self.first == self.last else f"{self.first}-{self.last}"

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def covers(self, other: PortRange) -> bool:
        return self.first <= other.first and other.last <= self.last

    def overlaps(self, other: PortRange) -> bool:
        return self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        return str(self.to_shorthand())


@dataclass(frozen=True, slots=True)
class Was:
    """Names that something had before, the oldest first: `was: resnet`, or `was: [resnet, resnet-a]` in the file.

    By the oldest the bucket and the nodes know it: there, another name would be another thing.
    """

    names: tuple[str, ...] = ()

    @classmethod
    def from_shorthand(cls, value: str | list[str]) -> Was:
        return cls((value,) if isinstance(value, str) else tuple(value))

    def to_shorthand(self) -> str | list[str]:
        return self.names[0] if len(self.names) == 1 else list(self.names)

    def first(self, name: str) -> str:
        """What it was called at first, which is `name` where it was never renamed."""
        return self.names[0] if self.names else name


@dataclass(frozen=True, slots=True)
class Users:
    """Who starts runs: a group (API keys) or a dynamic group (notebook sessions); `notebooks` makes the latter."""

    group: str | None = None
    dynamic_group: str | None = None
    notebooks: bool = False


@dataclass(frozen=True, slots=True)
class Narrow:
    """Whether documented statements are narrowed to the stack's own repository and bucket."""

    repository: bool = True
    bucket: bool = True


@dataclass(frozen=True, slots=True)
class Access:
    mode: AccessMode = "least-privilege"
    users: Users = Users()
    runs: str | None = None  # an existing dynamic group of job runs; made when absent
    domain: str | None = None
    domain_endpoint: str | None = None  # of that identity domain, where groups are made in it
    scope: Literal["compartment", "tenancy"] = "compartment"
    narrow: Narrow = Narrow()
    home_region: str | None = None
    existing: bool = False


@dataclass(frozen=True, slots=True)
class Network:
    cidr: str = "10.20.0.0/16"
    subnet_cidr: str | None = None
    mode: NetworkMode = "least"
    nat: bool = False
    vcn: str | None = None
    subnet: str | None = None
    route_table: str | None = None  # for a subnet made in an existing VCN
    compartment: str | None = None  # where an existing network lives, when not beside the jobs
    frameworks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bucket:
    name: str | None = None
    existing: str | None = None
    versioning: Literal[True, False, "suspended"] = True
    key: str | None = None
    keep: bool = True


@dataclass(frozen=True, slots=True)
class Registry:
    repository: str | None = None
    existing: str | None = None
    immutable: bool = False
    keep: bool = True


@dataclass(frozen=True, slots=True)
class ExistingLog:
    group: str
    log: str | None = None


@dataclass(frozen=True, slots=True)
class Logs:
    enabled: bool = True
    existing: ExistingLog | None = None
    retention_days: int = 30


@dataclass(frozen=True, slots=True)
class Project:
    name: str | None = None
    existing: str | None = None


@dataclass(frozen=True, slots=True)
class Vault:
    """A vault and key that exist, and the secrets this stack keeps in them."""

    vault: str
    key: str
    secrets: Mapping[str, Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Uses:
    """Another stack, and which concerns it answers for."""

    stack: str
    take: tuple[Concern, ...] = ("network", "access")


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    ocpus: float | None = None
    memory_gb: float | None = None

    @classmethod
    def from_shorthand(cls, value: str) -> Shape:
        return cls(value)


@dataclass(frozen=True, slots=True)
class Git:
    url: str
    branch: str | None = None
    commit: str | None = None
    secret: str | None = None  # OCID of the vault secret that opens a private repository


@dataclass(frozen=True, slots=True)
class Code:
    """Where the training code comes from: a folder beside the stack file, or git; absent, it is in the image."""

    folder: str | None = None
    git: Git | None = None

    @classmethod
    def from_shorthand(cls, value: str) -> Code:
        return cls(folder=value)


@dataclass(frozen=True, slots=True)
class Retry:
    count: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """As OpenPAI says it: -1 for `failures never fail the job` and `all must complete`."""

    min_failed: int = 1
    min_succeeded: int | None = None


EnvValue = str | Secret


@dataclass(frozen=True, slots=True)
class Role:
    replicas: int
    env: Mapping[str, EnvValue] = field(default_factory=dict)
    command: str | None = None
    retry: Retry = Retry()
    completion: Completion = Completion()
    was: Was = Was()

    @classmethod
    def from_shorthand(cls, value: int) -> Role:
        return cls(value)


@dataclass(frozen=True, slots=True)
class Input:
    """Data the nodes read: mounted at `mount` from the bucket and prefix."""

    mount: str
    bucket: str | None = None
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    args: tuple[str, ...] = ()
    env: Mapping[str, EnvValue] = field(default_factory=dict)
    attempt: int = 1
    until: Until = "started"
    was: Was = Was()


@dataclass(frozen=True, slots=True)
class Job:
    framework: str
    image: str
    shape: Shape
    roles: Mapping[str, Role]
    command: str
    strategy: str | None = None
    layout: Layout = "run-per-node"
    code: Code | None = None
    env: Mapping[str, EnvValue] = field(default_factory=dict)
    options: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    ports: Mapping[str, PortRange | Literal["all"]] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    block_storage_gb: int = 100
    maximum_runtime_minutes: int = 1440
    stall_minutes: int = STALL_MINUTES
    runs: Mapping[str, Run] = field(default_factory=dict)
    was: Was = Was()

    @property
    def nodes(self) -> int:
        return sum(role.replicas for role in self.roles.values())


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack file. `name` is Pulumi's name of the stack, `folder` where paths in the file start from."""

    name: str
    team: str
    environment: str
    region: str
    platform: str = "oci"
    compartment: str | None = None
    tenancy: str | None = None
    access: Access = Access()
    network: Network = Network()
    bucket: Bucket = Bucket()
    registry: Registry = Registry()
    logs: Logs = Logs()
    project: Project = Project()
    vault: Vault | None = None
    uses: Uses | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    frameworks: Mapping[str, str] = field(default_factory=dict)  # own framework -> its file, beside the stack file
    jobs: Mapping[str, Job] = field(default_factory=dict)
