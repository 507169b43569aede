# SPDX-License-Identifier: Apache-2.0
"""What the local AWS tells the hosts about its instances, and what the hosts tell back.

The local AWS calls `Machines`; the hosts call `MachineReports`. Both may be called on any thread, and both return at
once: neither side waits for the other.
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
    """One instance, as it is when it starts. `metadata` is the path of its metadata service on the cloud's endpoint."""

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
    """What is around a subnet: its blocks, and where its routes lead. `routes` is (block, target id) of its table.
    `endpoints`: the security groups of each interface that leads to a service of AWS's from inside the network."""

    subnet: str
    subnet_block: str
    network: str
    network_blocks: tuple[str, ...]
    routes: tuple[tuple[str, str], ...]
    endpoints: tuple[tuple[str, ...], ...] = ()


class Machines(Protocol):
    """What carries out instances. `localcloud/aws/hosts` implements it."""

    def started(self, machine: Machine) -> None:
        """An instance is pending: it was run, started again, or lives again after a kill of the cloud."""

    def stopped(self, instance: str) -> None:
        """A call stops it. Its disk stays."""

    def terminated(self, instance: str) -> None:
        """A call terminates it. Nothing of it stays."""

    def rebooted(self, machine: Machine) -> None: ...

    def send(self, command: MachineCommand) -> None: ...

    def cancel(self, command: str, instance: str) -> None: ...

    def network_changed(self) -> None:
        """Rules or routes changed: living instances get those in force now."""


class MachineReports(Protocol):
    """What the hosts say back, and what they may ask. `localcloud/aws/cloud.py` implements it."""

    def running(self, instance: str) -> None:
        """It is up."""

    def agent_ready(self, instance: str) -> None:
        """Its agent of Systems Manager answers from now on."""

    def ended_itself(self, instance: str) -> None:
        """It shut itself down. Its own setting makes of that a stop or a termination."""

    def failed(self, instance: str, reason: str) -> None:
        """It could not be started, or was lost. It stops with this reason."""

    def command_began(self, command: str, instance: str) -> None: ...

    def command_ended(self, command: str, instance: str, code: int | None, output: str, errors: str) -> None:
        """It ended. `code` is None if it ran out of time."""

    async def groups(self, region: str, ids: Sequence[str]) -> Sequence[SecurityGroupRules]:
        """The rules in force now. A group that is gone is left out."""

    async def around(self, region: str, subnet: str) -> NetworkAround | None:
        """None if the subnet is gone."""

    def nothing_runs(self, instance: str, reason: str) -> None:
        """It counts as running, but nothing carries it out. The instance says so as its state's reason."""

    async def machines(self) -> Sequence[Machine]:
        """All instances that are pending or running."""


class NoMachines:
    """Stands in where nothing carries out instances. They say so, their agents never answer, and so no command can be
    sent to them."""

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
