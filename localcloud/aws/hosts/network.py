# SPDX-License-Identifier: Apache-2.0
"""What is in force in the networks of living instances: rules and routes, as the local AWS said them last."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError

from localcloud.aws.machines import GroupRule, Machine, MachineReports, NetworkAround, SecurityGroupRules
from localcloud.hosts.assignment import NetworkReach
from localcloud.hosts.firewall import ICMP, TCP, UDP, Direction, FirewallRule, UnreadableRuleError

# The store has an address of its own, because a gateway endpoint leads to it and to nothing else.
STORAGE_ADDRESS, SERVICES_ADDRESS, METADATA_ADDRESS = "52.216.0.10", "52.94.0.10", "169.254.169.254"
ADDRESSES = (STORAGE_ADDRESS, SERVICES_ADDRESS, METADATA_ADDRESS)
_LOCAL, _BLACKHOLE = "local", ""
# What a route's target begins with, where it leads out of the network.
_OUT = ("igw-", "nat-", "tgw-", "eni-", "i-")
_PROTOCOLS: Mapping[str, int | None] = {"-1": None, "all": None, "tcp": TCP, "udp": UDP, "icmp": ICMP, "icmpv6": 58}
# Groups, and lists of addresses.
_NAMES = ("sg-", "pl-")
Members = Mapping[str, Sequence[str]]
HTTPS = 443


def destinations(around: NetworkAround) -> tuple[str, ...]:
    """The blocks that the router of a subnet reaches: its network, and what its routes lead to."""
    subnet = IPv4Network(around.subnet_block)
    blocks = {block for block in around.network_blocks if IPv4Network(block) != subnet}
    blocks |= set(_routed(around.routes))
    if around.endpoints:
        # In a real network they have addresses of its own, by names; here the services' own address leads there.
        blocks.add(f"{SERVICES_ADDRESS}/32")
    return tuple(sorted({*blocks, f"{METADATA_ADDRESS}/32"}))


def router(around: NetworkAround) -> str:
    """The address of a subnet's router: its first one."""
    return str(IPv4Network(around.subnet_block)[1])


def _routed(routes: Iterable[tuple[str, str]]) -> Iterator[str]:
    for block, target in routes:
        if block.startswith("pl-"):
            if target.startswith("vpce-"):
                yield f"{STORAGE_ADDRESS}/32"
        elif target.startswith("vpce-"):
            yield f"{STORAGE_ADDRESS}/32"
        elif target.startswith(_OUT) and ":" not in block:
            yield "default" if IPv4Network(block).prefixlen == 0 else block


def firewall_rules(groups: Iterable[SecurityGroupRules], members: Members) -> tuple[FirewallRule, ...]:
    """The rules of an interface's groups. `members` are the addresses in each group."""
    rules = list(_implied())
    for group in groups:
        for direction, side in _sides(group):
            rules += [_rule(group.id, direction, index, rule, members) for index, rule in enumerate(side)]
    return tuple(rules)


def members_of(machines: Iterable[Machine]) -> dict[str, list[str]]:
    """The addresses in each group. An instance is at the address of its first interface."""
    members: dict[str, list[str]] = {}
    for machine in (one for one in machines if one.interfaces):
        address = machine.interfaces[0].address
        for group in {name for each in machine.interfaces for name in each.groups}:
            members.setdefault(group, []).append(address)
    return members


def admits(rule: GroupRule, address: str, port: int, members: Members) -> bool:
    """Whether a rule is about this peer and this port of TCP."""
    read = _rule("", "ingress", 0, rule, members)
    if read.protocol not in (None, TCP) or (read.ports and not read.ports[0] <= port <= read.ports[1]):
        return False
    return any(IPv4Address(address) in block for block in read.peers)


def _implied() -> Iterator[FirewallRule]:
    """What no security group keeps from an instance: its metadata service."""
    peer = f"{METADATA_ADDRESS}/32"
    yield FirewallRule("", "egress", 0, TCP, peer, (IPv4Network(peer),), key="metadata", implied=True)


def _sides(group: SecurityGroupRules) -> tuple[tuple[Direction, Sequence[GroupRule]], ...]:
    return (("ingress", group.ingress), ("egress", group.egress))


def _rule(group: str, direction: Direction, index: int, rule: GroupRule, members: Members) -> FirewallRule:
    protocol = _protocol(rule.protocol)
    ports = icmp = None
    if protocol in (TCP, UDP) and rule.first_port is not None and rule.first_port >= 0:
        ports = (rule.first_port, rule.last_port if rule.last_port is not None else rule.first_port)
    if protocol == ICMP and rule.first_port is not None and rule.first_port >= 0:
        icmp = (rule.first_port, rule.last_port if rule.last_port is not None and rule.last_port >= 0 else None)
    text = repr((direction, protocol, rule.peer, ports, icmp))
    return FirewallRule(
        group, direction, index, protocol, rule.peer, _blocks(rule.peer, members), ports=ports, icmp=icmp,
        description=rule.description, named=rule.peer.startswith(_NAMES),
        key=hashlib.sha256(text.encode()).hexdigest()[:16],
    )  # fmt: skip


def _protocol(name: str) -> int | None:
    if name in _PROTOCOLS:
        return _PROTOCOLS[name]
    if not name.isdecimal():
        raise UnreadableRuleError(f"the protocol {name!a} of a security group")
    return int(name)


def _blocks(peer: str, members: Members) -> tuple[IPv4Network, ...]:
    if peer.startswith("sg-"):
        return tuple(IPv4Network(f"{address}/32") for address in members.get(peer, ()))
    if peer.startswith("pl-"):
        # The one list of AWS's own that instances here can reach: that of the store.
        return (IPv4Network(f"{STORAGE_ADDRESS}/32"),)
    if ":" in peer:  # instances here have no IPv6 address
        return ()
    try:
        return (IPv4Network(peer, strict=False),)
    except (AddressValueError, NetmaskValueError, ValueError):
        raise UnreadableRuleError(f"the peer {peer!a} of a security group") from None


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
        return NetworkReach(firewall_rules(groups, self._members(machine, around)), destinations(around))

    def _members(self, machine: Machine, around: NetworkAround) -> Mapping[str, Sequence[str]]:
        """The members of groups, as one instance meets them. The services are in the groups of the interfaces that lead
        to them, if those let the instance in: what refuses is their group, and not the instance's."""
        members = {name: list(addresses) for name, addresses in self.members.items()}
        for names in around.endpoints:
            lets_in = [one for name in names if (group := self.groups.get(name)) for one in group.ingress]
            if any(admits(rule, machine.interfaces[0].address, HTTPS, members) for rule in lets_in):
                for name in names:
                    members.setdefault(name, []).append(SERVICES_ADDRESS)
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
    return NetworkInForce(groups, around, members_of(machines))
