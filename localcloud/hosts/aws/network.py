# SPDX-License-Identifier: Apache-2.0
"""What is in force in the networks of living instances: rules and routes, as the local AWS said them last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localcloud.aws.machines import Machine, MachineReports, NetworkAround, SecurityGroupRules
from localcloud.hosts.assignment import NetworkReach
from localcloud.hosts.aws import places, rules

HTTPS = 443


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
        return NetworkReach(rules.firewall_rules(groups, self._members(machine, around)), places.destinations(around))

    def _members(self, machine: Machine, around: NetworkAround) -> Mapping[str, Sequence[str]]:
        """The members of groups, as one instance meets them. The services are in the groups of the interfaces that lead
        to them, if those let the instance in: what refuses is their group, and not the instance's."""
        members = {name: list(addresses) for name, addresses in self.members.items()}
        for names in around.endpoints:
            lets_in = [one for name in names if (group := self.groups.get(name)) for one in group.ingress]
            if any(rules.admits(rule, machine.interfaces[0].address, HTTPS, members) for rule in lets_in):
                for name in names:
                    members.setdefault(name, []).append(places.SERVICES_ADDRESS)
        return members


class LatestNetwork:
    """What is in force, by the latest question. Answers take a while, so questions overlap: one that was asked earlier
    and is answered later knows less of what is there, and replaces nothing."""

    def __init__(self, reports: MachineReports) -> None:
        self._reports = reports
        self._asked = self._answered = 0
        self.now = NetworkInForce()

    async def ask(self, *starting: Machine) -> NetworkInForce:
        """The answer. `starting`: machines that the local AWS need not know yet as living."""
        self._asked += 1
        number = self._asked
        living = {each.id: each for each in (*await self._reports.machines(), *starting)}
        network = await _ask(self._reports, list(living.values()))
        if number > self._answered:
            self._answered, self.now = number, network
        return network


async def _ask(reports: MachineReports, machines: Sequence[Machine]) -> NetworkInForce:
    """Of machines that end while it asks, the subnet or a group may be gone by then."""
    groups: dict[str, SecurityGroupRules] = {}
    around: dict[str, NetworkAround] = {}
    for machine in machines:
        if machine.subnet not in around:
            if (found := await reports.around(machine.region, machine.subnet)) is None:
                continue
            around[machine.subnet] = found
        wanted = {group for each in machine.interfaces for group in each.groups}
        wanted |= {group for names in around[machine.subnet].endpoints for group in names}
        groups |= {group.id: group for group in await reports.groups(machine.region, sorted(wanted - groups.keys()))}
    return NetworkInForce(groups, around, rules.members_of(machines))
