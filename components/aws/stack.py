# SPDX-License-Identifier: Apache-2.0
"""The Stack of AWS: the keys of all platforms, and those that only AWS has."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from catalog.aws import (
    CAPACITY_BLOCK,
    ON_DEMAND,
    SPOT,
    Accelerator,
    AwsMachine,
    Market,
    accelerator_of_machine,
    accelerators,
    aws_machine,
)
from schemas.findings import CheckRules
from schemas.model import Access, Job, NamedAlike, Network, PortRange, Stack, StackPlace
from schemas.stack_file import StackFile

VARIABLES = {
    "AWS_": "AWS's clients read it; a node acts by its role",
    "FI_EFA_": "it follows from the node's kernel and network cards",
}
# AWS allows no smaller one.
SMALLEST_SUBNET = 28
# Of a group, role or policy in IAM.
NAME = re.compile(r"[A-Za-z0-9+=,.@_-]{1,64}")


@dataclass(frozen=True, slots=True)
class AwsUsers:
    """Who starts runs: a group of IAM users, or a role that they assume."""

    group: str | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True)
class AwsAccess(Access):
    users: AwsUsers = AwsUsers()
    runs: str | None = None  # an existing role of the nodes; made when absent
    permissions_boundary: str | None = None  # the policy beyond which the nodes' role cannot go


HostNic = Literal["auto", "libfabric", "host-memory", "sockets"]
PublicAddress = Literal["none", "automatic", "elastic"]
# The addresses that endpoints of AWS's services need in the subnet, if there is no NAT gateway.
SERVICE_ENDPOINTS = 7
STOP_WHEN_IDLE = 30


@dataclass(frozen=True, slots=True)
class Ingress:
    """Addresses that are let in from outside, and the reason."""

    cidr: str
    ports: PortRange
    why: str


@dataclass(frozen=True, slots=True)
class AwsNetwork(Network):
    vpc: str | None = None
    route_table: str | None = None  # of a new subnet in an existing VPC
    security_group: str | None = None  # the nodes' group in an existing network
    zone: str | None = None
    ingress: tuple[Ingress, ...] = ()

    prefixes: ClassVar[tuple[int, int]] = (16, 28)
    # The first four addresses and the last one of every subnet.
    reserved_addresses: ClassVar[int] = 5
    beside_subnet: ClassVar[tuple[str, ...]] = ("subnet", "security_group", "ingress")
    inside_key: ClassVar[str] = "vpc"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The machines of a job: their image, their network, and when they stop."""

    ami: str | None = None  # an id, or an accelerator, for the newest image that AWS publishes for it
    ami_parameter: str | None = None  # a parameter of Systems Manager that holds the id
    release: str | None = None  # of the accelerators' software, where machines and images have to agree on one
    efa: int | None = None  # absent: as many as the machine has
    public_address: PublicAddress = "none"
    reservation: str | None = None
    placement_group: str | None = None  # the one in which a reservation lies; made when absent
    market: Market | None = None
    spot: bool | None = None  # the earlier way to write `market: spot`
    host_nic: HostNic = "auto"  # the earlier word `libfabric` means the same
    ssh_port: int = 3022
    stop_when_idle: int | None = None  # minutes; 0: never
    key_rotation: int = 1

    @property
    def bought(self) -> Market:
        return self.market or (SPOT if self.spot else ON_DEMAND)

    @property
    def idle_minutes(self) -> int:
        """After how many minutes without a run machines stop. Those of a capacity block never do: the block is paid
        for, and AWS frees their places only after minutes."""
        if self.bought == CAPACITY_BLOCK:
            return 0
        return STOP_WHEN_IDLE if self.stop_when_idle is None else self.stop_when_idle


@dataclass(frozen=True, slots=True)
class AwsJob(Job):
    cluster: Cluster = Cluster()

    @property
    def machine(self) -> AwsMachine | None:
        """The row of its instance type. None if the catalog does not have it, which is a finding."""
        return aws_machine(self.shape.name)

    @property
    def accelerator(self) -> Accelerator | None:
        return accelerator_of_machine(self.shape.name)

    @property
    def release(self) -> str:
        """Of the accelerators' software. Empty where machines and images need not agree on one."""
        row = self.accelerator
        return (self.cluster.release or row.release) if row and row.release else ""

    @property
    def efa(self) -> int:
        """The EFA interfaces with which each node starts."""
        most = self.machine.efa_interfaces if self.machine else 0
        return most if self.cluster.efa is None else self.cluster.efa

    def without_written_defaults(self) -> AwsJob:
        written = self.cluster
        bare = replace(self, cluster=replace(written, release=None, efa=None, stop_when_idle=None))
        changes_idle = written.idle_minutes != bare.cluster.idle_minutes
        cluster = replace(
            written,
            release=written.release if self.release != bare.release else None,
            efa=written.efa if self.efa != bare.efa else None,
            market=written.bought if written.bought != ON_DEMAND else None,
            spot=None,
            stop_when_idle=written.stop_when_idle if changes_idle else None,
        )
        return replace(self, cluster=cluster)


@dataclass(frozen=True, slots=True)
class Quota:
    """The account's quotas in this region."""

    vcpus: int | Mapping[str, int] | None = None  # by AWS's codes of quotas; a number counts for each of them
    addresses: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsDl1Stack(Stack):
    account: str | None = None
    access: AwsAccess = AwsAccess()
    network: AwsNetwork = AwsNetwork()
    quota: Quota = Quota()
    jobs: Mapping[str, AwsJob] = field(default_factory=dict)

    # EFA needs a security group that allows all traffic within itself.
    pins_ports: ClassVar[bool] = False

    @property
    def variables(self) -> Mapping[str, str]:
        return {**VARIABLES, **{name: why for row in accelerators().values() for name, why in row.reserved.items()}}

    def is_inside(self, host: str) -> bool:
        """Whether a host is S3's, which nodes reach through a gateway endpoint."""
        return host.startswith("s3.") and host.endswith(".amazonaws.com")

    def frameworks_of(self, job: AwsJob) -> tuple[tuple[str, ...] | None, str]:
        row = job.accelerator
        return (row.trains, row.why) if row else (None, "")

    def addresses(self, runs: Mapping[str, int]) -> int:
        """The number of addresses that nodes need. Runs of a job share its cluster."""
        nodes = 0
        for job in self.jobs.values():
            interfaces = job.machine.interfaces(job.efa) if job.machine else ()
            nodes += job.nodes * max(1, sum(interface.has_address for interface in interfaces))
        return nodes + (0 if self.network.nat or self.network.vpc else SERVICE_ENDPOINTS)

    @property
    def bucket_scope(self) -> tuple[str | None, ...]:
        """Bucket names are unique across all accounts and regions."""
        return ()

    def place(self) -> tuple[StackPlace, ...]:
        return (StackPlace("account", "in the account", self.account),)

    def named_alike(self) -> Iterator[NamedAlike]:
        if self.makes("access"):
            yield NamedAlike((self.account,), f"the role and policies of `{self.physical()}`", "the access")
        if self.makes("logs"):
            yield NamedAlike((self.account, self.region), f"the log group `{self.physical('training')}`", "the logs")


def gateway_cidr(network: str, nodes: str) -> str | None:
    """The last free block of the network. None if the nodes' subnet takes all of it."""
    whole, taken = ipaddress.ip_network(network, strict=False), ipaddress.ip_network(nodes, strict=False)
    last = ipaddress.ip_network(f"{whole.broadcast_address}/{SMALLEST_SUBNET}", strict=False)
    first = ipaddress.ip_network(f"{whole.network_address}/{SMALLEST_SUBNET}", strict=False)
    return next((str(block) for block in (last, first) if not block.overlaps(taken)), None)


RULES = CheckRules()
rule = RULES.rule
STACK_FILE = StackFile(AwsDl1Stack)
