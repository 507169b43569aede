# SPDX-License-Identifier: Apache-2.0
"""The rules in force in the networks of instances, if reads overlap and resources are deleted meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from localcloud.aws.hosts.machine_network import LatestNetwork
from localcloud.aws.machines import Machine, MachineInterface, SecurityGroupRules, SubnetFacts

GROUP = SecurityGroupRules("sg-1", "nodes", (), ())


def machine(number: int, subnet: str) -> Machine:
    interface = MachineInterface(f"eni-{number}", f"10.0.1.{number}", ("sg-1", "sg-gone"))
    return Machine(f"i-{number}", "c7i.xlarge", "ami-1", "us-east-1", subnet, (interface,), b"", {}, "/metadata")


class Reports:
    """The used part of `MachineReports`. The first call of `subnet_facts` waits for `go_on`."""

    def __init__(self, *living: Machine) -> None:
        self.living = list(living)
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def machines(self) -> Sequence[Machine]:
        return tuple(self.living)

    async def subnet_facts(self, region: str, subnet: str) -> SubnetFacts | None:
        if not self.asked.is_set():
            self.asked.set()
            await self.go_on.wait()
        return None if subnet == "gone" else SubnetFacts(subnet, "10.0.1.0/24", "vpc", ("10.0.0.0/16",), ())

    async def groups(self, region: str, ids: Sequence[str]) -> Sequence[SecurityGroupRules]:
        return [GROUP] if "sg-1" in ids else []


def test_a_stale_read_does_not_replace_a_newer_one() -> None:
    """Otherwise the second machine would have no subnet, and would not start."""
    first, second = machine(1, "one"), machine(2, "two")

    async def scenario() -> LatestNetwork:
        reports = Reports(first)
        network = LatestNetwork(reports)  # type: ignore[arg-type]
        early = asyncio.create_task(network.read(first))
        await reports.asked.wait()
        reports.living.append(second)
        await network.read(second)
        reports.go_on.set()
        assert (await early).reach(second) is None
        return network

    network = asyncio.run(scenario())
    assert network.now.reach(first)
    assert network.now.reach(second)
    assert network.now.members["sg-1"] == ["10.0.1.1", "10.0.1.2"]


def test_a_deleted_subnet_does_not_block_other_machines() -> None:
    ended, starting = machine(1, "gone"), machine(2, "two")

    async def scenario() -> LatestNetwork:
        reports = Reports(ended)
        reports.asked.set()
        network = LatestNetwork(reports)  # type: ignore[arg-type]
        await network.read(starting)
        return network

    network = asyncio.run(scenario())
    assert network.now.reach(starting)
    assert network.now.reach(ended) is None
