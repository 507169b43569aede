# SPDX-License-Identifier: Apache-2.0
"""The Stack of OpenPAI: the keys of all platforms, and those that only OpenPAI has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from catalog.frameworks import Framework, PortRow, RoleRow
from catalog.openpai import registry_of, same_registry
from schemas.findings import CheckRules
from schemas.model import Bucket, Job, NamedAlike, Role, Secret, Stack, StackPlace
from schemas.stack_file import StackFile

VARIABLES = {
    "PAI_": "OpenPAI sets it, so that tasks find themselves and one another",
    "FC_": "OpenPAI's controller sets it",
    "USER_CMD": "OpenPAI passes the command to a task in it",
}
# The image is a prerequisite, too.
IMAGE_NAME = "image"
# The runtime's plugin whose parameters are commands.
RUNS_COMMANDS = "cmd"
# In a command, this line ends the text of a parameter.
END_OF_PARAMETER = "TRAINYARD_PARAMETER"
Start = Literal["launcher", "plain", "as-is"]
Priority = Literal["crit", "prod", "test", "oppo"]


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster to which jobs are submitted, and the user."""

    uri: str
    user: str
    token: Secret | None = None
    virtual_cluster: str = "default"
    certificate: str | None = None


@dataclass(frozen=True, slots=True)
class Sku:
    """The resources of each task. `sku`, `pinned_cell_id`: the type of machine, or the cell, for the hived
    scheduler."""

    cpus: int
    memory_gb: float
    gpus: int = 0
    sku: str | None = None
    pinned_cell_id: str | None = None
    shm_mb: int | None = None
    infiniband: bool = False

    @property
    def memory_mb(self) -> int:
        return int(self.memory_gb * 1024)


@dataclass(frozen=True, slots=True)
class Storage:
    """A storage of the cluster. It is mounted in tasks at `mount`, and runs use `folder` below that."""

    name: str
    mount: str | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class OpenPaiBucket(Bucket):
    """A bucket of an S3 service outside of the cluster."""

    region: str | None = None
    endpoint: str | None = None
    access_key: Secret | None = None
    secret_key: Secret | None = None


@dataclass(frozen=True, slots=True)
class ImageAuth:
    """The credentials with which the image is pulled from a private registry."""

    user: str
    password: Secret
    registry: str | None = None


@dataclass(frozen=True, slots=True)
class Plugin:
    """A runtime plugin of OpenPAI's protocol."""

    plugin: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    failure_policy: Literal["fail", "ignore"] = "fail"
    taskroles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """Something that a job needs in addition to its image, and the commands that each task runs for it."""

    type: Literal["data", "script", "output"]
    name: str
    uri: tuple[str, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenPaiRole(Role):
    """`shape`: its own SKU. `ports`: how many ports a task gets for each label, only with `start: as-is`."""

    shape: str | None = None
    ports: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenPaiJob(Job):
    roles: Mapping[str, OpenPaiRole]
    start: Start = "launcher"
    job_priority_class: Priority | None = None
    image_auth: ImageAuth | None = None
    plugins: tuple[Plugin, ...] = ()
    prerequisites: tuple[Prerequisite, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def by_shell(self) -> bool:
        return self.start == "as-is"

    def credential_receivers(self) -> dict[str, str]:
        found = Job.credential_receivers(self)
        if self.image_auth:
            found["registry that gets the password"] = same_registry(
                self.image_auth.registry or registry_of(self.image)
            )
        return found

    def adapted(self, framework: Framework) -> Framework:
        """With `start: as-is`, the framework has the roles and ports that the job names, and nothing else."""
        if self.start != "as-is":
            return framework
        labels = dict.fromkeys(label for role in self.roles.values() for label in role.ports)
        return replace(
            framework,
            roles={name: RoleRow(0, "WORKER", "a role of the job's own", runs_command=True, carries=False)
                   for name in self.roles},
            ports=tuple(self._port(label) for label in labels),
            rank="the program reads OpenPAI's variables",
            environment={}, start_options=(), reserved=(), ads=None, processes=None, gang=False, wraps=(),
            stands_for=(),
        )  # fmt: skip

    def _port(self, label: str) -> PortRow:
        listens = tuple(name for name, role in self.roles.items() if label in role.ports)
        why = "a label of the job's own"
        return PortRow(label, listens, tuple(self.roles), default="all", why=why, evidence="inferred")

    def sku_name(self, role: str) -> str:
        """The SKU of a role's tasks: the role's own, or the job's."""
        return self.roles[role].shape or self.shape.name


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPaiStack(Stack):
    cluster: Cluster
    skus: Mapping[str, Sku] = field(default_factory=dict)
    storage: Storage | None = None
    bucket: OpenPaiBucket = OpenPaiBucket()
    jobs: Mapping[str, OpenPaiJob] = field(default_factory=dict)

    variables: ClassVar[Mapping[str, str]] = VARIABLES
    # Tasks share the network of their hosts, in which no ports are closed.
    pins_ports: ClassVar[bool] = False
    # Tasks of other jobs share it, too. OpenPAI reserves ports for a task, by label.
    reserves_ports: ClassVar[bool] = True
    takes_digests: ClassVar[bool] = False

    def place(self) -> tuple[StackPlace, ...]:
        return (StackPlace("cluster.uri", "on the cluster", self.cluster.uri),)

    def named_alike(self) -> Iterator[NamedAlike]:
        """The folders of runs. If another stack used the same ones, training would resume from its checkpoints."""
        if self.storage is None:
            return
        folder = self.storage.folder or f"{self.team}/{self.environment}"
        place = (self.cluster.uri.rstrip("/"), self.storage.name)
        remedy = "choose another team or environment, or give one of them a `folder` in `trainyard:storage`"
        for name, job in self.jobs.items():
            if job.runs:
                what = f"the folder `{folder}/{name}` of the storage `{self.storage.name}`"
                yield NamedAlike(place, what, "storage", remedy)

    def text_files(self) -> Iterator[str]:
        return iter([self.cluster.certificate] if self.cluster.certificate else [])

    def _exists(self, concern: str) -> bool:
        # OpenPAI has jobs only, and what they need exists already.
        return True


RULES = CheckRules()
rule = RULES.rule
STACK_FILE = StackFile(OpenPaiStack)
