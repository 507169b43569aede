# SPDX-License-Identifier: Apache-2.0
"""A rule that cannot be read fails the runs that it is about, and nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from components.values.security_rules import SecurityRule
from localcloud.aws.hosts.machine_network import NetworkInForce
from localcloud.aws.machines import Machine, MachineInterface, SecurityGroupRules, SubnetFacts
from localcloud.hosts.assignment import Interface, NetworkReach, Subnet
from localcloud.hosts.fabric import Fabric, _PlacedRun
from localcloud.hosts.firewall import UnreadableRuleError
from localcloud.hosts.lan import Lan, LanMember
from tests.support.security_rules import group_rule

ODD = (
    group_rule("banana", "10.0.0.0/8"), group_rule("300", "10.0.0.0/8"), group_rule("tcp", "10.0.0.0/8", 5, 70_000),
    group_rule("udp", "10.0.0.0/8", 9, 8), group_rule("icmp", "10.0.0.0/8", 300), group_rule("tcp", "10.0.0.0/99"),
)  # fmt: skip


class _Site:
    """Records what it runs."""

    def __init__(self) -> None:
        self.ran: list[Any] = []

    def run(self, tasks: Sequence[Any]) -> list[str]:
        self.ran += tasks
        return [""] * len(tasks)


@pytest.mark.parametrize("odd", ODD)
def test_an_unreadable_rule_fails_only_its_own_run(odd: SecurityRule) -> None:
    machines = {
        name: Machine(name, "c7i.xlarge", "ami-1", "us-east-1", "s",
                      (MachineInterface(f"eni-{name}", f"10.0.1.{number}", (name,)),), b"", {}, "/metadata")
        for number, name in enumerate(("theirs", "mine"), 4)
    }  # fmt: skip
    # The group of an endpoint is read for each instance of its network.
    facts = SubnetFacts("s", "10.0.1.0/24", "vpc", ("10.0.0.0/16",), (), endpoints=(("theirs",),))
    fine = SecurityGroupRules("mine", "mine", (group_rule("tcp", "10.0.0.0/8", 1, 2),), ())
    network = NetworkInForce({"theirs": SecurityGroupRules("theirs", "theirs", (odd,), ()), "mine": fine},
                             {"s": facts}, {})  # fmt: skip

    def reach(name: str) -> NetworkReach | None:
        return network.reach(machines[name])

    failed: list[str] = []
    site = _Site()
    subnet = Subnet("s", "vpc", "10.0.1.1", "", 24)
    members = {
        name: LanMember(0, "g", Interface(name, "10.0.1.4", "", partial(reach, name)), subnet) for name in machines
    }
    lan = Lan(site, "ip", "nft", members=list(members.values()))  # type: ignore[arg-type]
    fabric = Fabric("http://127.0.0.1:1", (), lambda _: None, fail=lambda run, _: failed.append(run))  # type: ignore[arg-type,return-value]
    fabric._lans["vpc"] = lan
    fabric._placed = {name: _PlacedRun("", [member], "vpc", lan) for name, member in members.items()}

    async def change() -> None:
        for _ in range(2):
            fabric.refresh()
            assert fabric._refreshing
            await fabric._refreshing

    with pytest.raises(UnreadableRuleError):
        reach("theirs")
    asyncio.run(change())
    assert failed == ["theirs"]
    assert site.ran, "the other's rules are in force"
