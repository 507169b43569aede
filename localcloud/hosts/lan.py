# SPDX-License-Identifier: Apache-2.0
"""A network in a site: a bridge for each subnet, a veth pair to each node, and each node's firewall and routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest

from localcloud.environments import network_tools
from localcloud.hosts import firewall
from localcloud.hosts.assignment import Interface, Subnet
from localcloud.hosts.firewall import FirewallRule, UnreadableRuleError
from localcloud.hosts.site import Namespace, Site, SiteError, SiteTask

# The largest packet in OCI's networks, and the name of a node's interface there.
_MTU = 9000
INTERFACE = "eth0"


class MissingToolsError(SiteError):
    """A program is missing. A user may install it while the cloud runs."""


@dataclass
class LanMember:
    """A node in the network, with the rules and routes of its namespace."""

    rank: int
    group: str
    interface: Interface
    subnet: Subnet
    namespace: Namespace = field(default=Namespace(-1, -1))
    cable: str = ""
    rules: tuple[FirewallRule, ...] = ()
    destinations: tuple[str, ...] = ()
    generation: int = 0  # of the ruleset that is in force

    @property
    def address(self) -> str:
        return self.interface.address


@dataclass
class Lan:
    """A network. `plan` and `changes` read the rules and routes now in force. `join`, `apply`, `leave` and
    `read_firewalls` wait for the site. Inside, the cloud serves the addresses `services`."""

    site: Site
    ip: str
    nft: str
    services: Sequence[str] = ()
    members: list[LanMember] = field(default_factory=list)
    stop_serving: list[Callable[[], None]] = field(default_factory=list)
    _bridges: dict[str, str] = field(default_factory=dict)
    _cables: int = 0

    @classmethod
    def start(cls, services: Sequence[str]) -> Lan:
        """Starts a site for a network. MissingToolsError: this machine lacks a program that makes networks."""
        ip, nft = map(network_tools.find_network_tool, ("ip", "nft"))
        if not ip or not nft:
            missing = " and ".join(name for name, path in (("ip", ip), ("nft", nft)) if not path)
            raise MissingToolsError(f"{missing} not found; install the packages iproute2 and nftables")
        return cls(Site(), ip, nft, services)

    def prepare(self) -> None:
        self.site.prepare()
        lines = ("link set lo up", *(f"address add {each}/32 dev lo" for each in self.services))
        self.site.run([self._ip(lines)])

    def try_out(self) -> None:
        """Tries everything that a run needs."""
        self.prepare()
        (namespace,) = self.site.open(1)
        inside = f"/proc/{self.site.pid}/fd/{namespace.number}"
        lines = ("link add bridge0 type bridge", f"link add cable0 type veth peer name {INTERFACE} netns {inside}")
        rulesets = (SiteTask([self.nft, "-f", "-"], text, namespace.number) for text in firewall.rulesets(()))
        self.site.run([self._ip(lines), *rulesets])
        self.site.release([namespace])

    def plan(self, members: Iterable[LanMember]) -> None:
        """Sets the rules and routes that the nodes get when they join."""
        for member in members:
            reach = member.interface.reach()
            if reach is None:
                raise SiteError("the subnet is gone")
            member.rules, member.destinations = reach.rules, reach.destinations

    def join(self, subnet: Subnet, members: Sequence[LanMember]) -> None:
        """Makes namespaces for new nodes. Each one's firewall is in force before its cable is connected."""
        namespaces = self.site.open(len(members))
        for member, namespace in zip(members, namespaces, strict=True):
            self._cables += 1
            member.namespace, member.cable = namespace, f"cable{self._cables}"
        new = subnet.id not in self._bridges
        try:
            connect = self._ip([*self._bridge(subnet), *self._connect(subnet, members)])
            for tasks in _task_rounds([[connect], *(self._firewall(member) for member in members)]):
                self.site.run(tasks)
            for_all = ("link set lo up", f"link set {INTERFACE} addrgenmode none")
            tasks = []
            for member in members:
                address = f"address add {member.address}/{subnet.prefix_length} dev {INTERFACE}"
                routes = _route_commands((), member.destinations, subnet.router)
                tasks.append(self._ip([*for_all, address, f"link set {INTERFACE} up", *routes], member))
            self.site.run(tasks)
        except SiteError:
            self._take_back(namespaces, self._bridges.pop(subnet.id, "") if new else "")
            raise
        self.members += members

    def _take_back(self, namespaces: Sequence[Namespace], bridge: str) -> None:
        """Removes new namespaces after a failure, and with them their cables."""
        with suppress(SiteError):
            self.site.release(namespaces)
            if bridge:
                self.site.run([self._ip([f"link delete {bridge}"])])

    def leave(self, members: Sequence[LanMember]) -> None:
        present = [member for member in members if member in self.members]
        self.members = [member for member in self.members if member not in present]
        try:
            self.site.run([self._ip(f"link delete {member.cable}" for member in present)])
        finally:
            self.site.release([member.namespace for member in present])

    def changes(self) -> tuple[list[list[SiteTask]], list[tuple[LanMember, str]]]:
        """The tasks that put the present rules and routes in force, a list for each node. Each list is run in order.
        Beside them the nodes whose rules cannot be read, with the reason: they concern no other node."""
        tasks: list[list[SiteTask]] = []
        unreadable: list[tuple[LanMember, str]] = []
        for member in self.members:
            try:
                reach = member.interface.reach()
            except UnreadableRuleError as error:
                unreadable.append((member, str(error)))
                continue
            if reach is None:
                continue
            if reach.rules != member.rules:
                member.rules, member.generation = reach.rules, member.generation + 1
                tasks.append(self._firewall(member))
            if reach.destinations != member.destinations:
                lines = _route_commands(member.destinations, reach.destinations, member.subnet.router)
                member.destinations = reach.destinations
                tasks.append([self._ip(lines, member)])
        return tasks, unreadable

    def apply(self, changes: Sequence[Sequence[SiteTask]]) -> None:
        for tasks in _task_rounds(changes):
            self.site.run(tasks)

    def read_firewalls(self, members: Sequence[LanMember]) -> list[str]:
        listing = [self.nft, "-j", "list", "table", *firewall.TABLE.split()]
        return self.site.run([SiteTask(listing, "", member.namespace.number) for member in members])

    def close(self) -> None:
        for stop in self.stop_serving:
            stop()
        self.site.close()

    def _firewall(self, member: LanMember) -> list[SiteTask]:
        texts = firewall.rulesets(member.rules, member.generation)
        return [SiteTask([self.nft, "-f", "-"], text, member.namespace.number) for text in texts]

    def _ip(self, lines: Iterable[str], member: LanMember | None = None) -> SiteTask:
        namespace = member.namespace.number if member else None
        return SiteTask([self.ip, "-batch", "-"], "\n".join(lines) + "\n", namespace)

    def _bridge(self, subnet: Subnet) -> Iterator[str]:
        if subnet.id in self._bridges:
            return
        bridge = self._bridges[subnet.id] = f"subnet{len(self._bridges)}"
        # By default a bridge has the lowest hardware address of its ports. When that node leaves, the address changes,
        # and the other nodes would use the router's old address for half a minute.
        yield f"link add {bridge} mtu {_MTU} address {subnet.router_hardware} type bridge stp_state 0"
        yield f"address add {subnet.router}/{subnet.prefix_length} dev {bridge}"
        yield f"link set {bridge} up"

    def _connect(self, subnet: Subnet, members: Iterable[LanMember]) -> Iterator[str]:
        for member in members:
            inside = f"/proc/{self.site.pid}/fd/{member.namespace.number}"
            peer = f"peer name {INTERFACE} mtu {_MTU} address {member.interface.hardware} netns {inside}"
            yield f"link add {member.cable} mtu {_MTU} type veth {peer}"
            yield f"link set {member.cable} master {self._bridges[subnet.id]} up"


def _task_rounds(sequences: Iterable[Sequence[SiteTask]]) -> Iterator[list[SiteTask]]:
    """The first tasks of all sequences, then the second ones, and so on. The tasks of one round may run at once."""
    for tasks in zip_longest(*sequences):
        yield [task for task in tasks if task]


def _route_commands(before: Iterable[str], after: Iterable[str], router: str) -> Iterator[str]:
    yield from (f"route delete {block} via {router}" for block in sorted(set(before) - set(after)))
    yield from (f"route add {block} via {router}" for block in sorted(set(after) - set(before)))
