# SPDX-License-Identifier: Apache-2.0
"""What is in force in the networks of living instances: rules and routes, as the local AWS said them last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localcloud.aws.machines import Machine, MachineReports, NetworkAround, SecurityGroupRules
from localcloud.hosts.assignment import NetworkReach
from localcloud.hosts.aws import places, rules


@dataclass(frozen=True)
class NetworkInForce:
    """A snapshot. Firewalls are asked at once, and the local AWS answers later."""

    groups: Mapping[str, SecurityGroupRules] = field(default_factory=dict)
    around: Mapping[str, NetworkAround] = field(default_factory=dict)
    members: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def reach(self, machine: Machine) -> NetworkReach | None:
        """What is in force for an instance. All its interfaces are one here, with the groups of all."""
        around = self.around.get(machine.subnet)
        if around is None:
            return None
        names = dict.fromkeys(group for each in machine.interfaces for group in each.groups)
        groups = [self.groups[name] for name in names if name in self.groups]
        return NetworkReach(rules.firewall_rules(groups, self.members), places.destinations(around))


async def ask_network(reports: MachineReports, machines: Sequence[Machine]) -> NetworkInForce:
    groups: dict[str, SecurityGroupRules] = {}
    around: dict[str, NetworkAround] = {}
    for machine in machines:
        wanted = {group for each in machine.interfaces for group in each.groups} - groups.keys()
        groups |= {group.id: group for group in await reports.groups(machine.region, sorted(wanted))}
        if machine.subnet not in around:
            around[machine.subnet] = await reports.around(machine.region, machine.subnet)
    return NetworkInForce(groups, around, rules.members_of(machines))
