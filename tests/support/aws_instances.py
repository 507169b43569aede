# SPDX-License-Identifier: Apache-2.0
"""Instances on the hosts without AWS's API. A recorder of reports replaces the local AWS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from socket import socket

from localcloud.aws.hosts import machine_network
from localcloud.aws.hosts.machine_dispatch import Instances
from localcloud.aws.machines import Machine, MachineCommand, MachineInterface, SecurityGroupRules, SubnetFacts
from localcloud.hosts.fabric import Fabric
from tests.support.security_rules import group_rule

GROUP, SUBNET = "sg-1", "subnet-1"
ITSELF = replace(group_rule("-1", GROUP), description="the group itself")
TO_ITSELF = replace(ITSELF, direction="egress")


async def serve_nothing(listener: socket) -> Callable[[], None]:
    return listener.close


@dataclass
class Reports:
    """`localcloud.aws.machines.MachineReports`."""

    living: dict[str, Machine] = field(default_factory=dict)
    group: SecurityGroupRules = field(default_factory=lambda: SecurityGroupRules(GROUP, "efa", (ITSELF,), (TO_ITSELF,)))
    heard: list[tuple[str, ...]] = field(default_factory=list)
    ended: dict[str, tuple[int | None, str, str]] = field(default_factory=dict)

    def running(self, instance: str) -> None:
        self.heard.append(("running", instance))

    def agent_ready(self, instance: str) -> None:
        self.heard.append(("agent", instance))

    def ended_itself(self, instance: str) -> None:
        self.heard.append(("ended", instance))

    def failed(self, instance: str, reason: str) -> None:
        self.heard.append(("failed", instance, reason))

    def command_began(self, command: str, instance: str) -> None:
        self.heard.append(("began", command))

    def command_ended(self, command: str, instance: str, code: int | None, output: str, errors: str) -> None:
        self.ended[command] = (code, output, errors)

    async def groups(self, region: str, ids: Sequence[str]) -> Sequence[SecurityGroupRules]:
        return [self.group] if GROUP in ids else []

    async def subnet_facts(self, region: str, subnet: str) -> SubnetFacts:
        return SubnetFacts(subnet, "10.0.1.0/24", "vpc-1", ("10.0.0.0/16",), ())

    async def machines(self) -> Sequence[Machine]:
        return list(self.living.values())


@dataclass
class Data:
    """The hosts of one test."""

    instances: Instances
    reports: Reports
    folder: Path

    def start(self, number: int, user_data: str = "", instance_type: str = "dl1.24xlarge") -> Machine:
        address = f"10.0.1.{9 + number}"
        interface = MachineInterface(f"eni-{number}", address, (GROUP,), kind="efa")
        machine = Machine(
            f"i-{number:017d}", instance_type, "ami-1", "us-east-1", SUBNET, (interface,), user_data.encode(),
            {"node": f"node-{number}"}, "/metadata",
        )  # fmt: skip
        self.reports.living[machine.id] = machine
        self.instances.started(machine)
        return machine

    async def until(self, true: Callable[[], object], what: str) -> None:
        try:
            async with asyncio.timeout(60):
                while not true():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{what}: {self.reports.heard} {self.reports.ended}\n{self.consoles()}") from None

    async def heard(self, *words: str) -> None:
        await self.until(lambda: words in self.reports.heard, f"waited for {words}")

    async def run(self, machine: Machine, *lines: str, seconds: float = 60) -> tuple[int | None, str, str]:
        """Runs a command of Systems Manager, and waits for its end."""
        command = MachineCommand(f"c{len(self.reports.ended)}-{machine.id}", machine.id, lines, seconds)
        self.instances.send(command)
        await self.until(lambda: command.id in self.reports.ended, f"waited for {lines}")
        return self.reports.ended[command.id]

    def consoles(self) -> str:
        return "\n".join(file.read_text(errors="replace")[-3000:] for file in self.folder.glob("*/node-0.log"))


@asynccontextmanager
async def data_centre(folder: Path) -> AsyncIterator[Data]:
    reports = Reports()
    serve: Callable[[socket], Awaitable[Callable[[], None]]] = serve_nothing
    instances = Instances(folder, Fabric("http://127.0.0.1:1", machine_network.ADDRESSES, serve), reports)
    try:
        yield Data(instances, reports, folder)
    finally:
        await instances.stop()
