# SPDX-License-Identifier: Apache-2.0
"""What a team wrote, as frozen values: the Stack.

Field names are the keys of the stack file in snake_case; `schemas/convert.py` goes both ways by these types alone,
so a key is described in two places only: here and in neutral.schema.json (a contract test holds them together).
What one platform only has stands in its folder: schemas/<platform>/model.py and section.schema.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from catalog.platforms import default_platform

NOTHING: Mapping[str, Any] = MappingProxyType({})

AccessMode = Literal["least-privilege", "documented", "proof-of-concept"]
NetworkMode = Literal["least", "documented", "proof-of-concept"]
Layout = Literal["run-per-node", "node-groups"]
Until = Literal["accepted", "started", "finished"]
# A gang of nodes that does nothing for so long is ended; what the launcher does where nothing else is said.
STALL_MINUTES = 30
# Who answers for a concern: this stack makes it, it exists already, or another stack has it.
Answers = Literal["made", "existing", "taken"]


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
class Access:
    """Who may do what. Whom it is granted to, a platform says in its own words."""

    mode: AccessMode = "least-privilege"
    existing: bool = False


@dataclass(frozen=True, slots=True)
class Network:
    cidr: str = "10.20.0.0/16"
    subnet_cidr: str | None = None
    mode: NetworkMode = "least"
    nat: bool = False
    subnet: str | None = None
    frameworks: tuple[str, ...] = ()

    # The largest and the smallest block that the platform takes, and how many addresses of a subnet it keeps.
    prefixes: ClassVar[tuple[int, int]] = (1, 32)
    reserved_addresses: ClassVar[int] = 0
    # What may be said of an existing subnet, and the key that names an existing network to make a subnet in.
    beside_subnet: ClassVar[tuple[str, ...]] = ("subnet",)
    inside_key: ClassVar[str] = ""

    @property
    def inside(self) -> str | None:
        """The existing network in which a subnet is made."""
        return getattr(self, self.inside_key) if self.inside_key else None


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
class Logs:
    enabled: bool = True
    retention_days: int = 30


@dataclass(frozen=True, slots=True)
class Uses:
    """Another stack, and which concerns it answers for."""

    stack: str
    take: tuple[str, ...] = ("network", "access")


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
    secret: str | None = None  # what opens a private repository


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
    """-1 means `failures never fail the job` and `all must complete`."""

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


class StackPlace(NamedTuple):
    """One part of where a stack lies: its key in the file, in words, and the value."""

    key: str
    words: str
    value: str | None


class NamedAlike(NamedTuple):
    """A thing that can be there once: `where`, what it is, and the concern it belongs to."""

    where: tuple[str | None, ...]
    what: str
    concern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One stack file. `name` is Pulumi's name of the stack, `folder` where paths in the file start from.

    What only one platform has is in its own Stack (schemas/<platform>/model.py), which has these columns as well.
    """

    name: str
    team: str
    environment: str
    region: str
    platform: str = field(default_factory=default_platform)
    access: Access = Access()
    network: Network = Network()
    bucket: Bucket = Bucket()
    registry: Registry = Registry()
    logs: Logs = Logs()
    uses: Uses | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    frameworks: Mapping[str, str] = field(default_factory=dict)  # own framework -> its file, beside the stack file
    jobs: Mapping[str, Job] = field(default_factory=dict)

    # Variables that the platform sets on a node -> what for. Names and prefixes: a prefix ends with an underscore.
    variables: ClassVar[Mapping[str, str]] = NOTHING
    # Folders of a node that are the platform's own.
    system_folders: ClassVar[tuple[str, ...]] = ()

    def physical(self, *what: str) -> str:
        """`<team>-<environment>-<what>`: what resources are called."""
        return "-".join((self.team, self.environment, *what))

    @property
    def bucket_name(self) -> str:
        return self.bucket.existing or self.bucket.name or self.physical("training")

    @property
    def repository_name(self) -> str:
        registry = self.registry
        return registry.existing or registry.repository or f"{self.team}/{self.environment}/training"

    def answer(self, concern: str) -> Answers:
        """Who answers for the network, the access, the bucket and so on."""
        if self.uses is not None and concern in self.uses.take:
            return "taken"
        return "existing" if self._exists(concern) else "made"

    def makes(self, concern: str) -> bool:
        return self.answer(concern) == "made"

    def references(self) -> tuple[str, ...]:
        """`${…}` that the platform answers, beside those that every platform does."""
        return ()

    def is_inside(self, host: str) -> bool:
        """Whether nodes reach a host without the internet."""
        return False

    def place(self) -> tuple[StackPlace, ...]:
        """Where the stack lies, as far as two stacks that share something must lie in the same place."""
        return ()

    def named_alike(self) -> Iterator[NamedAlike]:
        """What is called by team and environment alone, beside the bucket and the repository."""
        return iter(())

    @property
    def account(self) -> str | None:
        """Within what the name of a bucket or repository is there once."""
        return None

    def _exists(self, concern: str) -> bool:
        match concern:
            case "network":
                return self.network.subnet is not None
            case "logs":
                return not self.logs.enabled
            case _:
                return bool(getattr(getattr(self, concern), "existing", None))
