# SPDX-License-Identifier: Apache-2.0
"""The rules and routes of running instances, as last read from the local AWS, for the hosts' firewalls."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network

from components.platform.traffic import Flow
from components.values.protocols import TCP
from components.values.security_rules import SecurityRule
from localcloud.aws.machines import Machine, MachineReports, SecurityGroupRules, SubnetFacts
from localcloud.hosts.assignment import NetworkReach
from localcloud.hosts.firewall import FirewallRule, UnreadableRuleError

# S3 has its own address, because a gateway endpoint leads only to S3.
STORAGE_ADDRESS, SERVICES_ADDRESS, METADATA_ADDRESS = "52.216.0.10", "52.94.0.10", "169.254.169.254"
ADDRESSES = (STORAGE_ADDRESS, SERVICES_ADDRESS, METADATA_ADDRESS)
_LOCAL, _BLACKHOLE = "local", ""
# Prefixes of route targets outside of the network.
_OUT = ("igw-", "nat-", "tgw-", "eni-", "i-")
Members = Mapping[str, Sequence[str]]
HTTPS = 443


def instance_destinations(facts: SubnetFacts) -> tuple[str, ...]:
    """The CIDR blocks that a subnet's router reaches: its network, and the destinations of its routes."""
    subnet = _parse_network(facts.subnet_block, "the block {} of a subnet")
    blocks = {block for block in facts.network_blocks if _parse_network(block, "the block {} of a VPC") != subnet}
    for block, target in facts.routes:
        if target.startswith("vpce-"):
            blocks.add(f"{STORAGE_ADDRESS}/32")
        elif target.startswith(_OUT) and ":" not in block and not block.startswith("pl-"):
            network = _parse_network(block, "the destination {} of a route")
            blocks.add("default" if network.prefixlen == 0 else str(network))
    if facts.endpoints:
        # In a real VPC, interface endpoints have addresses of the VPC. Here they have the address of the services.
        blocks.add(f"{SERVICES_ADDRESS}/32")
    return tuple(sorted({*blocks, f"{METADATA_ADDRESS}/32"}))


def router_address(facts: SubnetFacts) -> str:
    """The address of a subnet's router: the first of the subnet."""
    return str(_parse_network(facts.subnet_block, "the block {} of a subnet")[1])


def firewall_rules(groups: Iterable[SecurityGroupRules], members: Members) -> tuple[FirewallRule, ...]:
    """The firewall rules of security groups. `members`: the addresses in each group."""
    # The rule for the metadata service, which security groups never block.
    peer = f"{METADATA_ADDRESS}/32"
    rules = [
        FirewallRule(
            list="", index=0, direction="egress", protocol=TCP, peer=peer, peers=(IPv4Network(peer),), key="metadata",
            implied=True,
        )
    ]  # fmt: skip
    for group in groups:
        for side in (group.ingress, group.egress):
            rules += [_to_firewall_rule(group.id, index, rule, members) for index, rule in enumerate(side)]
    return tuple(rules)


def members_of(machines: Iterable[Machine]) -> dict[str, list[str]]:
    """The addresses in each security group. An instance counts with the address of its first interface."""
    members: dict[str, list[str]] = {}
    for machine in (one for one in machines if one.interfaces):
        address = machine.interfaces[0].address
        for group in {name for each in machine.interfaces for name in each.groups}:
            members.setdefault(group, []).append(address)
    return members


def admits_address(rule: SecurityRule, address: str, port: int, members: Members) -> bool:
    """Whether a rule allows this peer to use this TCP port. A rule that cannot be read allows nothing."""
    try:
        read = _to_firewall_rule("", 0, rule, members)
    except UnreadableRuleError:
        return False
    connection = Flow(rule.direction, address, "", port, TCP, count=0)
    return read.allows(connection, lambda peer: any(IPv4Address(peer) in block for block in read.peers))


def _to_firewall_rule(group: str, index: int, rule: SecurityRule, members: Members) -> FirewallRule:
    if not isinstance(rule.protocol, int | None):
        raise UnreadableRuleError(f"the protocol {rule.protocol!a} of a security group")
    for name, pair, most in (("ports", rule.ports, 65_535), ("ICMP types", rule.icmp, 255)):
        values = [value for value in pair or () if value is not None]
        if not all(0 <= value <= most for value in values) or (name == "ports" and values != sorted(values)):
            raise UnreadableRuleError(f"the {name} {values} of a security group")
    if rule.peer.startswith("sg-"):
        peers = tuple(IPv4Network(f"{address}/32") for address in members.get(rule.peer, ()))
    elif rule.peer.startswith("pl-"):  # of AWS's prefix lists, instances here reach only that of S3
        peers = (IPv4Network(f"{STORAGE_ADDRESS}/32"),)
    elif ":" in rule.peer:  # no instance here has an IPv6 address
        peers = ()
    else:
        peers = (_parse_network(rule.peer, "the peer {} of a security group"),)
    text = repr((rule.direction, rule.protocol, rule.peer, rule.ports, rule.icmp))
    return FirewallRule(
        **vars(rule), list=group, index=index, peers=peers, named=rule.peer_kind != "addresses",
        key=hashlib.sha256(text.encode()).hexdigest()[:16],
    )  # fmt: skip


def _parse_network(text: str, what: str) -> IPv4Network:
    try:
        return IPv4Network(text, strict=False)
    except ValueError:
        raise UnreadableRuleError(what.format(ascii(text))) from None


@dataclass(frozen=True)
class NetworkInForce:
    """A snapshot of rules and routes. It exists because firewalls need an answer at once, and reading the local AWS is
    slow."""

    groups: Mapping[str, SecurityGroupRules] = field(default_factory=dict)
    subnets: Mapping[str, SubnetFacts] = field(default_factory=dict)
    members: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def reach(self, machine: Machine) -> NetworkReach | None:
        """The rules and routes of an instance. Its interfaces count as one, with the groups of all."""
        facts = self.subnets.get(machine.subnet)
        if facts is None:
            return None
        names = dict.fromkeys(group for each in machine.interfaces for group in each.groups)
        groups = [self.groups[name] for name in names if name in self.groups]
        return NetworkReach(firewall_rules(groups, self._members(machine, facts)), instance_destinations(facts))

    def _members(self, machine: Machine, facts: SubnetFacts) -> Mapping[str, Sequence[str]]:
        """The members of groups, as one instance sees them. The services are members of their endpoints' groups if
        these allow the instance. So a group of an endpoint can block an instance."""
        members = {name: list(addresses) for name, addresses in self.members.items()}
        for names in facts.endpoints:
            lets_in = [one for name in names if (group := self.groups.get(name)) for one in group.ingress]
            if any(admits_address(rule, machine.interfaces[0].address, HTTPS, members) for rule in lets_in):
                for name in names:
                    members.setdefault(name, []).append(SERVICES_ADDRESS)
        return members


class LatestNetwork:
    """The newest snapshot. Reads may overlap. If an earlier read ends after a later one, its result is stale, and is
    discarded."""

    def __init__(self, reports: MachineReports) -> None:
        self._reports = reports
        self._reads_begun = self._newest_read = 0
        self.now = NetworkInForce()

    async def read(self, *starting: Machine) -> NetworkInForce:
        """Reads a snapshot. `starting`: machines that the local AWS may not list yet."""
        self._reads_begun += 1
        number = self._reads_begun
        living = {each.id: each for each in (*await self._reports.machines(), *starting)}
        machines = list(living.values())
        # Subnets and groups that are deleted meanwhile are left out.
        groups: dict[str, SecurityGroupRules] = {}
        subnets: dict[str, SubnetFacts] = {}
        for machine in machines:
            if machine.subnet not in subnets:
                if (facts := await self._reports.subnet_facts(machine.region, machine.subnet)) is None:
                    continue
                subnets[machine.subnet] = facts
            wanted = {group for each in machine.interfaces for group in each.groups}
            wanted |= {group for names in subnets[machine.subnet].endpoints for group in names}
            groups |= {
                group.id: group for group in await self._reports.groups(machine.region, sorted(wanted - groups.keys()))
            }
        network = NetworkInForce(groups, subnets, members_of(machines))
        if number > self._newest_read:
            self._newest_read, self.now = number, network
        return network
