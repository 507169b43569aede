# SPDX-License-Identifier: Apache-2.0
"""The Stack of OCI: the keys of all platforms, and those that only OCI has. Also the number of nodes that fit on a
machine of a compute target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

from schemas.findings import CheckRules
from schemas.model import Access, Job, Logs, NamedAlike, Network, Secret, Shape, Stack, StackPlace
from schemas.stack_file import StackFile

# `${secret.<name>}` is the OCID of a secret of trainyard:vault.
SECRET = "secret."
VARIABLES = {
    "OCI__": "ADS images read and trainyard sets it",
    "OCI_RESOURCE_PRINCIPAL_": "OCI gives it to every run: it is the run's identity",
    "JOB_OCID": "OCI Data Science sets it",
    "JOB_RUN_OCID": "OCI Data Science sets it",
    "PROJECT_OCID": "OCI Data Science sets it",
    "JOB_RUN_ENTRYPOINT": "OCI Data Science starts the code artifact by it",
    "CONTAINER_CUSTOM_IMAGE": "OCI Data Science takes the container from it; it follows from `image`",
    "CONTAINER_ENTRYPOINT": "OCI Data Science starts the container by it",
    "CONTAINER_CMD": "OCI Data Science starts the container by it",
    "CLUSTER_NODES_METADATA_FILE": "OCI Data Science sets it in node groups",
    "INITIAL_CLUSTER_SIZE": "OCI Data Science sets it in node groups",
    "NODE_COUNT": "OCI Data Science sets it in node groups",
    "MAIN_JOB_RUN_OCID": "nodes find the main node by it",
    "CONDA_ENV_": "the environment is a container, not conda",
}


@dataclass(frozen=True, slots=True)
class Users:
    """Who starts runs: a group (API keys) or a dynamic group (notebook sessions). `notebooks` makes the latter."""

    group: str | None = None
    dynamic_group: str | None = None
    notebooks: bool = False


@dataclass(frozen=True, slots=True)
class Narrow:
    """Whether documented statements are narrowed to the stack's own repository and bucket."""

    repository: bool = True
    bucket: bool = True


@dataclass(frozen=True, slots=True)
class OciAccess(Access):
    users: Users = Users()
    runs: str | None = None  # an existing dynamic group of job runs; made when absent
    domain: str | None = None
    domain_endpoint: str | None = None  # of that identity domain, where groups are made in it
    scope: Literal["compartment", "tenancy"] = "compartment"
    narrow: Narrow = Narrow()
    home_region: str | None = None


@dataclass(frozen=True, slots=True)
class FlowLog:
    """An existing VCN flow log that records the subnet."""

    group: str
    log: str


@dataclass(frozen=True, slots=True)
class OciNetwork(Network):
    vcn: str | None = None
    route_table: str | None = None  # of a new subnet in an existing VCN
    compartment: str | None = None  # the compartment of an existing network, if not that of the jobs
    flow_log: bool | FlowLog = False  # true: made; otherwise an existing one

    prefixes: ClassVar[tuple[int, int]] = (16, 30)
    # The first two addresses and the last one of every subnet.
    reserved_addresses: ClassVar[int] = 3
    beside_subnet: ClassVar[tuple[str, ...]] = ("subnet", "compartment", "flow_log")
    inside_key: ClassVar[str] = "vcn"


@dataclass(frozen=True, slots=True)
class ExistingLog:
    group: str
    log: str | None = None


@dataclass(frozen=True, slots=True)
class OciLogs(Logs):
    existing: ExistingLog | None = None


@dataclass(frozen=True, slots=True)
class Project:
    name: str | None = None
    existing: str | None = None


@dataclass(frozen=True, slots=True)
class Vault:
    """An existing vault and key, and the secrets that this stack stores in them."""

    vault: str
    key: str
    secrets: Mapping[str, Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ComputeTarget:
    """Machines of one shape that jobs share: new ones, or those that `existing` names."""

    shape: Shape | None = None
    instances: int = 1
    boot_volume_gb: int | None = None
    existing: str | None = None


@dataclass(frozen=True, slots=True)
class OciJob(Job):
    capacity_reservation: str | None = None
    compute_target: str | None = None  # a key of trainyard:computeTargets

    @property
    def joins_subnet(self) -> bool:
        """Whether its nodes are in the stack's subnet. OCI's API has no subnet for a single run on a target."""
        return self.compute_target is None or self.layout == "node-groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class OciStack(Stack):
    compartment: str | None = None
    tenancy: str | None = None
    access: OciAccess = OciAccess()
    network: OciNetwork = OciNetwork()
    logs: OciLogs = OciLogs()
    project: Project = Project()
    vault: Vault | None = None
    compute_targets: Mapping[str, ComputeTarget] = field(default_factory=dict)
    jobs: Mapping[str, OciJob] = field(default_factory=dict)

    system_folders: ClassVar[tuple[str, ...]] = ("/home/datascience/decompressed_artifact",)

    @property
    def joins_subnet(self) -> bool:
        """Whether any of its nodes, now or later, is in its subnet."""
        return not self.jobs or any(job.joins_subnet for job in self.jobs.values())

    @property
    def variables(self) -> Mapping[str, str]:
        return VARIABLES

    def references(self) -> tuple[str, ...]:
        secrets = self.vault.secrets if self.vault else ()
        return ("namespace", *(f"{SECRET}{name}" for name in secrets))

    def is_inside(self, host: str) -> bool:
        """Whether nodes reach the host through the service gateway."""
        return host.endswith(".oraclecloud.com")

    def place(self) -> tuple[StackPlace, ...]:
        return (StackPlace("tenancy", "in the tenancy", self.tenancy),)

    def named_alike(self) -> Iterator[NamedAlike]:
        if self.makes("access"):
            groups = {"runs": not self.access.runs, "notebooks": self.access.users.notebooks}
            for group in (group for group, makes in groups.items() if makes):
                yield NamedAlike(
                    (self.account, self.access.domain), f"the group `{self.physical(group)}`", "the access"
                )
            yield NamedAlike((self.compartment,), f"the policies of `{self.physical()}`", "the access")
        if self.makes("logs") and self.logs.existing is None:
            yield NamedAlike(
                (self.compartment, self.region), f"the log group `{self.physical('training')}`", "the logs"
            )

    @property
    def account(self) -> str | None:
        return self.tenancy or self.compartment

    def _exists(self, concern: str) -> bool:
        if concern == "logs" and self.logs.enabled and self.logs.existing is not None:
            # The log group may exist without the log. Then a log is made in it.
            return self.logs.existing.log is not None
        return Stack._exists(self, concern)


def is_ocid(text: str) -> bool:
    return text.startswith("ocid1.")


class MachineShare(NamedTuple):
    """OCPUs, memory and GPUs of a whole machine, or of a node's share of it."""

    ocpus: float
    memory_gb: float
    gpus: int

    def times_in(self, machine: MachineShare) -> int:
        """How many of these shares fit on a machine. No document says how much of a machine the service itself uses."""
        pairs = ((machine.ocpus, self.ocpus), (machine.memory_gb, self.memory_gb), (machine.gpus, self.gpus))
        return min(int(there // wanted) for there, wanted in pairs if wanted)


def is_flexible(shape: Shape) -> bool:
    """Whether users choose the shape's size."""
    return shape.name.endswith(".Flex")


def share_of(shape: Shape, shapes: Mapping[str, Mapping[str, Any]]) -> MachineShare | None:
    """The size in the shape, or else that of the whole machine. None if the catalog does not have it."""
    row = shapes.get(shape.name, {})
    ocpus = shape.ocpus or row.get("vcpus", 0) / 2
    memory = shape.memory_gb or row.get("memory_gib", 0)
    return MachineShare(ocpus, memory, row.get("accelerators", 0)) if ocpus and memory else None


RULES = CheckRules()
rule = RULES.rule
STACK_FILE = StackFile(OciStack)
