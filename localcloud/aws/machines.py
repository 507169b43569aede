# SPDX-License-Identifier: Apache-2.0
"""The interface between the local AWS and the hosts: instances to run, and reports about them.

The local AWS calls `Machines`, the hosts call `MachineReports`. Both may be called on any thread and return at once, so
that neither side waits for the other.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

log = logging.getLogger("localcloud")


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
    """An instance at its start. `metadata`: the path of its metadata service on the cloud's endpoint."""

    id: str
    image: str
    region: str
    subnet: str
    interfaces: tuple[MachineInterface, ...]
    user_data: bytes
    tags: Mapping[str, str]
    metadata: str


@dataclass(frozen=True)
class MachineCommand:
    """A command of Systems Manager for one instance: lines for a shell."""

    id: str
    instance: str
    lines: Sequence[str]
    timeout_seconds: float
    folder: str = ""


@dataclass(frozen=True)
class GroupRule:
    """A rule of a security group. `peer` is a block of addresses, or another group's id. No ports: all of them.
    `protocol` is `-1` for all, or `tcp`, `udp`, `icmp`, or a number."""

    protocol: str
    peer: str
    first_port: int | None = None
    last_port: int | None = None
    description: str = ""


@dataclass(frozen=True)
class SecurityGroupRules:
    id: str
    name: str
    ingress: tuple[GroupRule, ...]
    egress: tuple[GroupRule, ...]


@dataclass(frozen=True)
class NetworkAround:
    """The network around a subnet: its blocks and routes. `routes`: (block, target id) of its route table.
    `endpoints`: the security groups of each interface endpoint of the network."""

    subnet: str
    subnet_block: str
    network: str
    network_blocks: tuple[str, ...]
    routes: tuple[tuple[str, str], ...]
    endpoints: tuple[tuple[str, ...], ...] = ()


class Machines(Protocol):
    """Runs instances. `localcloud/aws/hosts` implements it."""

    def started(self, machine: Machine) -> None:
        """An instance has to start: it is new, was started again, or ran when the cloud was killed."""

    def stopped(self, instance: str) -> None:
        """An instance has to stop. Its disk is kept."""

    def terminated(self, instance: str) -> None:
        """An instance has to end. Nothing of it is kept."""

    def rebooted(self, machine: Machine) -> None: ...

    def send(self, command: MachineCommand) -> None: ...

    def cancel(self, command: str, instance: str) -> None: ...

    def network_changed(self) -> None:
        """Rules or routes have changed. Running instances have to get the new ones."""


class MachineReports(Protocol):
    """Takes the hosts' reports, and answers their queries. `localcloud/aws/cloud.py` implements it."""

    def running(self, instance: str) -> None:
        """An instance has booted."""

    def agent_ready(self, instance: str) -> None:
        """An instance's agent of Systems Manager has started."""

    def ended_itself(self, instance: str) -> None:
        """An instance shut itself down. Its settings decide whether it stops or terminates."""

    def failed(self, instance: str, reason: str) -> None:
        """An instance could not be started, or was lost. It stops with this reason."""

    def command_began(self, command: str, instance: str) -> None: ...

    def command_ended(self, command: str, instance: str, code: int | None, output: str, errors: str) -> None:
        """A command ended. `code` None: it reached its timeout."""

    async def groups(self, region: str, ids: Sequence[str]) -> Sequence[SecurityGroupRules]:
        """The rules in force now. Deleted groups are left out."""

    async def around(self, region: str, subnet: str) -> NetworkAround | None:
        """The network around a subnet; None if the subnet was deleted."""

    def nothing_runs(self, instance: str, reason: str) -> None:
        """An instance counts as running, but nothing runs it. Its state's reason says so."""

    async def machines(self) -> Sequence[Machine]:
        """All instances that are pending or running."""


class NoMachines:
    """For a cloud without hosts. Its instances say that nothing runs them, and take no commands, because their agents
    never answer."""

    WHY = "No hosts are attached to this local cloud: nothing runs on its instances"

    def __init__(self, reports: MachineReports) -> None:
        self._reports = reports

    def started(self, machine: Machine) -> None:
        log.warning("%s: %s", machine.id, self.WHY)
        self._reports.nothing_runs(machine.id, self.WHY)

    def stopped(self, instance: str) -> None: ...

    def terminated(self, instance: str) -> None: ...

    def rebooted(self, machine: Machine) -> None: ...

    def send(self, command: MachineCommand) -> None:
        self._reports.command_ended(command.id, command.instance, 1, "", self.WHY)

    def cancel(self, command: str, instance: str) -> None: ...

    def network_changed(self) -> None: ...
