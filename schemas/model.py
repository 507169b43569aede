# SPDX-License-Identifier: Apache-2.0
"""The content of a stack file as frozen values: the Stack.

Field names are the keys of the stack file in snake_case. `schemas/convert.py` converts both ways by these types alone.
So a key is described in two places only: here and in neutral.schema.json, which a contract test compares. Keys of a
single platform are in its folder: components/<platform>/stack.py and section.schema.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from catalog.platforms import default_platform, platforms
from schemas.job_code import git_host

if TYPE_CHECKING:
    from catalog.frameworks import Framework

NOTHING: Mapping[str, Any] = MappingProxyType({})

AccessMode = Literal["least-privilege", "documented", "proof-of-concept"]
NetworkMode = Literal["least", "documented", "proof-of-concept"]
Layout = Literal["run-per-node", "node-groups"]
Until = Literal["accepted", "started", "finished"]
Preflight = Literal["on", "warn", "off"]
# Minutes in which all nodes of a run are idle, after which it is stopped. This is the launcher's default.
STALL_MINUTES = 30
# Where a concern comes from: this stack makes it, it exists already, or it is taken from another stack.
Answers = Literal["made", "existing", "taken"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A `secure:` value. Its text is unknown when a file is loaded, so all secrets compare as equal."""

    value: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PortRange:
    """`8786` or `8700-8800` in the file."""

    first: int
    last: int

    @classmethod
    def from_shorthand(cls, value: int | str) -> PortRange:
        # Dask writes ranges with a colon. Both forms are valid.
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
    """Former names, the oldest first: `was: resnet`, or `was: [resnet, resnet-a]` in the file.

    The bucket and the nodes keep using the oldest name, because a new name would mean another run or job there.
    """

    names: tuple[str, ...] = ()

    @classmethod
    def from_shorthand(cls, value: str | list[str]) -> Was:
        return cls((value,) if isinstance(value, str) else tuple(value))

    def to_shorthand(self) -> str | list[str]:
        return self.names[0] if len(self.names) == 1 else list(self.names)

    def first(self, name: str) -> str:
        """The oldest name. It is `name` if there was no rename."""
        return self.names[0] if self.names else name


@dataclass(frozen=True, slots=True)
class Access:
    """Who may do what. Each platform adds its own keys for users and roles."""

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

    # The largest and the smallest block that the platform allows, and how many addresses of a subnet it reserves.
    prefixes: ClassVar[tuple[int, int]] = (1, 32)
    reserved_addresses: ClassVar[int] = 0
    # Keys allowed beside an existing subnet, and the key of an existing network in which a subnet is made.
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
    """Another stack, and the concerns that this one takes from it."""

    stack: str
    take: tuple[str, ...] = ("network", "access")


@dataclass(frozen=True, slots=True)
class Waiver:
    """Why this stack may break a rule of the policy pack, and the last day on which it may: `2026-12-31`."""

    reason: str
    until: str


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
    secret: str | None = None  # the credential of a private repository


@dataclass(frozen=True, slots=True)
class Code:
    """The source of the training code: a folder or git. Without it, the code is in the image."""

    folder: str | None = None
    git: Git | None = None

    @classmethod
    def from_shorthand(cls, value: str) -> Code:
        return cls(folder=value)


@dataclass(frozen=True, slots=True)
class Requirements:
    """A pip requirements file. `build`: packages whose source may be built, which runs their code."""

    file: str
    build: tuple[str, ...] = ()

    @classmethod
    def from_shorthand(cls, value: str) -> Requirements:
        return cls(value)


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


EachValue = str | bool | int | float


@dataclass(frozen=True, slots=True)
class Run:
    """With `each`, one run for every combination of its values (schemas/each.py)."""

    each: Mapping[str, tuple[EachValue, ...]] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    env: Mapping[str, EnvValue] = field(default_factory=dict)
    attempt: int = 1
    until: Until = "started"
    was: Was = Was()
    at_most: int | None = None


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
    requirements: Requirements | None = None
    env: Mapping[str, EnvValue] = field(default_factory=dict)
    options: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    ports: Mapping[str, PortRange | Literal["all"]] = field(default_factory=dict)
    inputs: tuple[Input, ...] = ()
    block_storage_gb: int = 100
    maximum_runtime_minutes: int = 1440
    stall_minutes: int = STALL_MINUTES
    preflight: Preflight = "on"
    speaks: tuple[str, ...] = ()  # whose variables and programs the command's script gets
    keep: tuple[str, ...] = ()  # globs of files in the working directory
    runs: Mapping[str, Run] = field(default_factory=dict)
    was: Was = Was()

    @property
    def nodes(self) -> int:
        return sum(role.replicas for role in self.roles.values())

    @property
    def by_shell(self) -> bool:
        """Whether a shell runs its commands unchanged."""
        return False

    def credential_receivers(self) -> dict[str, str]:
        """Who gets a credential of this job, by words for it. Reviews compare them."""
        git = self.code.git if self.code else None
        return {"host that gets the credential for git": git_host(git.url)} if git and git.secret else {}

    def without_written_defaults(self) -> Job:
        """The same job, without what it would mean anyway where the default is no fixed value. Reviews compare it."""
        return self

    def adapted(self, framework: Framework) -> Framework:
        """The framework for this job: a platform's jobs may have roles of their own."""
        return framework


class StackPlace(NamedTuple):
    """One part of a stack's place, such as its account: the key in the file, words for it, and the value."""

    key: str
    words: str
    value: str | None


class NamedAlike(NamedTuple):
    """A resource that can exist only once: `where`, its words, its concern, and the remedy if no other stack shares
    it."""

    where: tuple[str | None, ...]
    what: str
    concern: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One stack file. `name` is Pulumi's name of the stack. Paths in the file start at `folder`.

    Each platform has its own Stack with further fields (components/<platform>/stack.py).
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
    waivers: Mapping[str, Waiver] = field(default_factory=dict)  # rule of the policy pack -> why it may be broken
    frameworks: Mapping[str, str] = field(default_factory=dict)  # own framework -> its file, beside the stack file
    jobs: Mapping[str, Job] = field(default_factory=dict)

    # Whether ports that training chooses freely must be in a range. False if nodes can reach each other on all ports.
    pins_ports: ClassVar[bool] = True
    # Whether the platform chooses the numbers of ports and keeps them free for a node.
    reserves_ports: ClassVar[bool] = False
    # Whether an image may be named by its digest.
    takes_digests: ClassVar[bool] = True
    # Folders of a node that are the platform's own.
    system_folders: ClassVar[tuple[str, ...]] = ()

    def physical(self, *what: str) -> str:
        """The name of a resource in the cloud: `<team>-<environment>-<what>`."""
        return "-".join((self.team, self.environment, *what))

    @property
    def bucket_name(self) -> str:
        return self.bucket.existing or self.bucket.name or self.physical("training")

    @property
    def repository_name(self) -> str:
        registry = self.registry
        return registry.existing or registry.repository or f"{self.team}/{self.environment}/training"

    def answer(self, concern: str) -> Answers:
        """The origin of a concern, such as the network or the bucket."""
        if self.uses is not None and concern in self.uses.take:
            return "taken"
        return "existing" if self._exists(concern) else "made"

    def makes(self, concern: str) -> bool:
        return self.answer(concern) == "made"

    def references(self) -> tuple[str, ...]:
        """References `${…}` that only this platform fills in."""
        return ()

    def is_inside(self, host: str) -> bool:
        """Whether nodes reach a host without the internet."""
        return False

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables that the platform sets on a node -> why. A name that ends with an underscore is a prefix."""
        return NOTHING

    def frameworks_of(self, job: Any) -> tuple[tuple[str, ...] | None, str]:
        """The frameworks that train on a job's machines, and the reason. None: all of them."""
        row = platforms()[self.platform]
        return row.trains, row.why

    def addresses(self, runs: Mapping[str, int]) -> int:
        """The most addresses of its subnet in use at once. `runs`: the number of runs of each job."""
        return sum(job.nodes * max(1, runs[name]) for name, job in self.jobs.items())

    def place(self) -> tuple[StackPlace, ...]:
        """The stack's place. Two stacks that share something must have the same one."""
        return ()

    def named_alike(self) -> Iterator[NamedAlike]:
        """Resources whose names consist of team and environment only, without the bucket and the repository."""
        return iter(())

    def text_files(self) -> Iterator[str]:
        """Paths of further files beside the stack file that checks of its platform read."""
        return iter(())

    @property
    def account(self) -> str | None:
        """The account in which the names of buckets and repositories are unique."""
        return None

    @property
    def bucket_scope(self) -> tuple[str | None, ...]:
        """The scope in which a bucket's name is unique on this platform."""
        return (self.account, self.region)

    def _exists(self, concern: str) -> bool:
        match concern:
            case "network":
                return self.network.subnet is not None
            case "logs":
                return not self.logs.enabled
            case _:
                return bool(getattr(getattr(self, concern), "existing", None))
