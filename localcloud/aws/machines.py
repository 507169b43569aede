# SPDX-License-Identifier: Apache-2.0
"""The interface between the local AWS and the hosts: instances to run, and reports about them.

The local AWS calls `Machines`, and the hosts call `MachineReports`. The latter, and `Machines.later`, may be called on
any thread. Their methods return at once, except for queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from components.values.security_rules import SecurityRule


@dataclass(frozen=True)
class MachineInterface:
    """A network interface. `kind` is `interface`, `efa` or `efa-only`."""

    id: str
    address: str
    groups: tuple[str, ...]
    kind: str = "interface"
    mac: str = ""


@dataclass(frozen=True)
class Machine:
    """An instance that starts. `metadata`: the path of its metadata service on the cloud's endpoint."""

    id: str
    instance_type: str
    image: str
    region: str
    subnet: str
    interfaces: tuple[MachineInterface, ...]
    user_data: bytes
    tags: Mapping[str, str]
    metadata: str


@dataclass(frozen=True)
class MachineCommand:
    """A command of Systems Manager for one instance: lines of a shell script."""

    id: str
    instance: str
    lines: Sequence[str]
    timeout_seconds: float
    folder: str = ""


@dataclass(frozen=True)
class SecurityGroupRules:
    id: str
    name: str
    ingress: tuple[SecurityRule, ...]
    egress: tuple[SecurityRule, ...]


@dataclass(frozen=True)
class SubnetFacts:
    """A subnet and its network (VPC). `routes`: destination and target id of each route in the subnet's route table.
    `endpoints`: the security groups of each interface endpoint of the network."""

    subnet: str
    subnet_block: str
    network: str
    network_blocks: tuple[str, ...]
    routes: tuple[tuple[str, str], ...]
    endpoints: tuple[tuple[str, ...], ...] = ()


class Machines(Protocol):
    """Runs instances. `localcloud/aws/hosts` implements it."""

    def later(self, step: Callable[[], None]) -> None:
        """Has the hosts' own thread carry out a step, which may call the other methods. Steps keep their order."""

    def started(self, machine: Machine) -> None:
        """Starts an instance: a new one, a stopped one, or one that ran when the cloud was killed."""

    def stopped(self, instance: str) -> None:
        """Stops an instance, and keeps its disk."""

    def terminated(self, instance: str) -> None:
        """Ends an instance, and deletes its disk."""

    def rebooted(self, machine: Machine) -> None: ...

    def send(self, command: MachineCommand) -> None: ...

    def cancel(self, command: str, instance: str) -> None: ...

    def network_changed(self) -> None:
        """Applies changed rules and routes to the running instances."""


class MachineReports(Protocol):
    """Takes the hosts' reports, and answers their queries. `localcloud/aws/cloud.py` implements it."""

    def running(self, instance: str) -> None:
        """An instance has booted."""

    def agent_ready(self, instance: str) -> None:
        """The Systems Manager agent of an instance has started."""

    def ended_itself(self, instance: str) -> None:
        """An instance shut itself down. Its settings decide whether it stops or terminates."""

    def failed(self, instance: str, reason: str) -> None:
        """An instance could not be started, or was lost. It stops with this reason."""

    def command_began(self, command: str, instance: str) -> None: ...

    def command_ended(self, command: str, instance: str, code: int | None, output: str, errors: str) -> None:
        """A command ended. `code` is None if it reached its timeout."""

    async def groups(self, region: str, ids: Sequence[str]) -> Sequence[SecurityGroupRules]:
        """The current rules of security groups. Deleted groups are left out."""

    async def subnet_facts(self, region: str, subnet: str) -> SubnetFacts | None:
        """The subnet and its network; None if the subnet was deleted."""

    async def machines(self) -> Sequence[Machine]:
        """All instances that are pending or running."""
