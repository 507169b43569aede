# SPDX-License-Identifier: Apache-2.0
"""The networks of the nodes. A run fails if its rules cannot be enforced.

Each network with running nodes has a site, a process that holds its namespaces (site.py). There is one exception: on a
machine without namespaces, and only if the user allowed it explicitly, nodes get loopback addresses and no rules.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from socket import socket
from typing import Any
from urllib.parse import urlsplit

from localcloud.files import REMEDY
from localcloud.hosts import evidence, syscall_filter
from localcloud.hosts.assignment import Assignment, Subnet
from localcloud.hosts.firewall import UnreadableRuleError
from localcloud.hosts.lan import Lan, LanMember, MissingToolsError
from localcloud.hosts.site import LoopbackSite, SiteError, SiteGoneError

SERVICES_PORT = 443
NO_SUBNET = "the run names no subnet, so it is in the service's own network, which has no security rules"
NO_NODES = "no node of the run was ever in a network: the run did not get that far, or it was deleted"
LOST = "the local cloud was killed while the run was in progress, and the firewalls' counts were lost"
_LOOPBACK = IPv4Address("127.0.0.1")
# Serves a listening socket. Returns a function that stops serving and closes all connections.
Serve = Callable[[socket], Awaitable[Callable[[], None]]]
# Makes a run fail: (run, reason).
Fail = Callable[[str, str], None]
log = logging.getLogger("localcloud")


class NotInForceError(Exception):
    """The rules of a run cannot be enforced. The text is for its user."""


@dataclass(frozen=True)
class NamespaceFiles:
    """Open files of a node's namespaces, through which a process enters them."""

    user: int
    network: int


@dataclass(frozen=True)
class NodePlace:
    """A node's address, the endpoints of the cloud's services as it reaches them, and its namespaces if it has any.
    `filtered`: whether its system calls are filtered; only a user's explicit permission makes it False."""

    address: str
    endpoints: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    entry: NamespaceFiles | None = None
    filtered: bool = True


@dataclass
class _PlacedRun:
    """The nodes of a run and their network, until the run is released."""

    reason: str
    members: Sequence[LanMember] = ()
    network: str = ""
    lan: Lan | None = None
    loopback: LoopbackSite | None = None
    stop_serving: list[Callable[[], None]] = field(default_factory=list)


@dataclass
class Fabric:
    """All sites of one local cloud. Only the server's thread may call it.

    Outside of networks the cloud serves `endpoint`, inside of them the addresses `services`. Without such addresses it
    serves `endpoint` in each node, too. `may_skip_rules`: whether nodes may run without rules on a machine without
    namespaces.
    """

    endpoint: str
    services: Sequence[str]
    serve: Serve
    may_skip_rules: bool = False
    fail: Fail = lambda run, reason: None
    _lans: dict[str, Lan] = field(default_factory=dict)
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)
    _placed: dict[str, _PlacedRun] = field(default_factory=dict)
    _logged_reasons: set[str] = field(default_factory=set)
    _why_not: str | None = None
    _changed: bool = False
    _refreshing: asyncio.Task[None] | None = None

    async def why_not(self) -> str:
        """Why rules cannot be enforced on this machine; empty if they can."""
        try:
            return await self._unavailable()
        except SiteGoneError as error:
            return str(error)

    async def why_not_isolated(self) -> str:
        """What a node lacks on this machine, with or without permission to run so; empty if it lacks nothing."""
        return syscall_filter.why_unfilterable() or await self.why_not()

    async def _unavailable(self) -> str:
        """What this machine lacks; empty if it lacks nothing. The result of a trial is cached, but missing programs are
        searched each time. SiteGoneError: the trial gave no answer."""
        if not self.may_skip_rules and (reason := syscall_filter.why_unfilterable()):
            return reason
        if self._why_not is None:
            try:
                lan = Lan.start(self.services)
                try:
                    await asyncio.to_thread(lan.try_out)
                finally:
                    lan.close()
                self._why_not = ""
            except SiteGoneError:
                raise
            except MissingToolsError as error:
                return str(error)
            except SiteError as error:
                self._why_not = str(error)
        return self._why_not

    async def place(self, assignment: Assignment) -> list[NodePlace]:
        """Puts the nodes of a run into their network, and returns their places by rank. NotInForceError: the rules
        cannot be enforced. Without a subnet the nodes share a loopback of their own."""
        filtered = self._filters_calls()
        return [replace(place, filtered=filtered) for place in await self._place(assignment)]

    def _filters_calls(self) -> bool:
        """Whether the system calls of nodes are filtered. NotInForceError: this machine has no filter, and the user did
        not allow to run without one."""
        reason = syscall_filter.why_unfilterable()
        if reason and not self.may_skip_rules:
            raise NotInForceError(f"The system calls of the run cannot be filtered on this machine: {reason}. {REMEDY}")
        if reason and reason not in self._logged_reasons:
            self._logged_reasons.add(reason)
            log.warning("nodes may make every system call: %s", reason)
        return not reason

    async def _place(self, assignment: Assignment) -> list[NodePlace]:
        run, groups, subnet = assignment.id, assignment.outline.groups_by_rank, assignment.subnet
        if subnet is None:
            return await self._place_alone(run, len(groups))
        members = [
            LanMember(rank, group, interface, subnet)
            for rank, (group, interface) in enumerate(zip(groups, assignment.interfaces, strict=True))
        ]
        try:
            return await self._place_in_site(run, subnet, members)
        except (SiteError, UnreadableRuleError) as error:
            await self._require_permission(str(error))
            # If only a program for networks is missing, nodes still get namespaces.
            loopback = await self._share_loopback(run, subnet.network, _PlacedRun(str(error), members, subnet.network))
            entry = NamespaceFiles(loopback.site.user, loopback.site.network) if loopback else None
            return [self._on_loopback("127." + member.address.partition(".")[2], entry) for member in members]

    async def _require_permission(self, reason: str) -> None:
        """Raises NotInForceError, unless this machine has no namespaces and the user allowed nodes without rules."""
        try:
            unavailable = await self._unavailable()
        except SiteGoneError:
            unavailable = ""
        if not unavailable or not self.may_skip_rules:
            remedy = f". {REMEDY}" if unavailable else ""
            raise NotInForceError(f"The security rules of the run cannot be enforced on this machine: {reason}{remedy}")
        if reason not in self._logged_reasons:
            self._logged_reasons.add(reason)
            log.warning("nodes run on loopback addresses and no security rule is enforced: %s", reason)

    async def release(self, run: str) -> evidence.Row | None:
        """Removes a run's nodes from the network, and returns the counts of their firewalls."""
        placed = self._placed.get(run)
        if placed is None:
            return None
        try:
            seen = await self.evidence(run)
        finally:
            self._placed.pop(run, None)
            _stop_serving(placed)
            self._close_loopback(placed.loopback)
            if placed.lan:
                await self._leave(placed, placed.lan)
        return seen

    async def evidence(self, run: str) -> evidence.Row | None:
        """The counts of a run's firewalls so far; None if the run has ended."""
        placed = self._placed.get(run)
        if placed is None:
            return None
        reason, counters = placed.reason, [""] * len(placed.members)
        if placed.lan:
            async with self._lock(placed.network):
                try:
                    counters = await asyncio.to_thread(placed.lan.read_firewalls, placed.members)
                except SiteError as error:
                    reason = f"the network of the run is gone: {error}"
        nodes = [
            evidence.NodeEvidence(member.rank, member.group, member.address, member.interface.id, member.rules, text)
            for member, text in zip(placed.members, counters, strict=True)
        ]
        return evidence.build_evidence(run, reason, nodes)

    def refresh(self) -> None:
        """Applies changed rules and routes to running nodes. Called after a change of a network."""
        if not self._lans:
            return
        self._changed = True
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())

    async def close(self) -> None:
        if self._refreshing:
            self._refreshing.cancel()
        for lan in self._lans.values():
            lan.close()
        self._lans.clear()
        for run in list(self._placed):
            placed = self._placed.pop(run)
            _stop_serving(placed)
            self._close_loopback(placed.loopback)

    async def _refresh(self) -> None:
        while self._changed:
            self._changed = False
            for network in list(self._lans):
                async with self._lock(network):
                    if (lan := self._lans.get(network)) is None:
                        continue
                    tasks, unreadable = lan.changes()
                    for member, why in unreadable:
                        self._fail_changed(why, lan, member)
                    try:
                        await asyncio.to_thread(lan.apply, tasks)
                    except SiteError as error:
                        self._fail_changed(str(error), lan)

    def _fail_changed(self, why: str, lan: Lan, member: LanMember | None = None) -> None:
        """Makes the runs of a network fail, or only the run of one node: new rules could not be enforced."""
        reason = f"a change of its rules could not be put in force: {why}"
        for run, placed in self._placed.items():
            concerned = member is None or any(one is member for one in placed.members)
            if placed.lan is lan and concerned and placed.reason != reason:
                log.error("run %s: %s", run, reason)
                placed.reason = reason
                self.fail(run, f"The network of the run is out of date: {reason}")

    async def _place_alone(self, run: str, count: int) -> list[NodePlace]:
        loopback = entry = None
        try:
            loopback = await LoopbackSite.start(self.endpoint, self.serve)
            entry = NamespaceFiles(loopback.site.user, loopback.site.network)
        except SiteError as error:
            await self._require_permission(str(error))
        self._placed[run] = _PlacedRun(NO_SUBNET, loopback=loopback)
        return [self._on_loopback(str(_LOOPBACK + rank), entry) for rank in range(count)]

    async def _share_loopback(self, run: str, network: str, placed: _PlacedRun) -> LoopbackSite | None:
        """The loopback that the nodes of a network share, so that several runs can meet. None: no namespaces."""
        async with self._lock(network):
            others = (other.loopback for other in self._placed.values() if other.network == network)
            placed.loopback = next((loopback for loopback in others if loopback and loopback.site.alive), None)
            if placed.loopback is None:
                with suppress(SiteError):
                    placed.loopback = await LoopbackSite.start(self.endpoint, self.serve)
            self._placed[run] = placed
        return placed.loopback

    def _close_loopback(self, loopback: LoopbackSite | None) -> None:
        """Closes a loopback if no run uses it any more."""
        if loopback and not any(other.loopback is loopback for other in self._placed.values()):
            loopback.close()

    async def _place_in_site(self, run: str, subnet: Subnet, members: Sequence[LanMember]) -> list[NodePlace]:
        async with self._lock(subnet.network):
            lan = self._lans.get(subnet.network)
            if lan is None or not lan.site.alive:
                lan = await self._new_lan(subnet.network)
            try:
                lan.plan(members)
                await asyncio.to_thread(lan.join, subnet, members)
            except (SiteError, UnreadableRuleError):
                self._close_if_empty(subnet.network, lan)
                raise
            self._placed[run] = placed = _PlacedRun("", members, subnet.network, lan)
            if not self.services:
                await self._serve_on_loopback(placed, lan)
        endpoints = [f"http://{address}:{SERVICES_PORT}" for address in self.services] or [self.endpoint]
        return [
            NodePlace(member.address, endpoints, entry=NamespaceFiles(lan.site.user, member.namespace.file))
            for member in members
        ]

    async def _serve_on_loopback(self, placed: _PlacedRun, lan: Lan) -> None:
        """Serves the cloud's outside address on the loopback of each node."""
        address = urlsplit(self.endpoint)
        for member in placed.members:
            place = (str(address.hostname), address.port or 80, member.namespace.number)
            placed.stop_serving.append(await self.serve(await asyncio.to_thread(lan.site.listen, *place)))

    async def _new_lan(self, network: str) -> Lan:
        lan = Lan.start(self.services)
        try:
            await asyncio.to_thread(lan.prepare)
            for address in self.services:
                lan.stop_serving.append(
                    await self.serve(await asyncio.to_thread(lan.site.listen, address, SERVICES_PORT))
                )
        except BaseException:
            lan.close()
            raise
        self._lans[network] = lan
        return lan

    async def _leave(self, placed: _PlacedRun, lan: Lan) -> None:
        async with self._lock(placed.network):
            try:
                await asyncio.to_thread(lan.leave, placed.members)
            except SiteError as error:
                log.error("a site is gone: %s", error)
            self._close_if_empty(placed.network, lan)

    def _close_if_empty(self, network: str, lan: Lan) -> None:
        if not lan.members:
            lan.close()
            if self._lans.get(network) is lan:
                del self._lans[network]

    def _lock(self, network: str) -> asyncio.Lock:
        return self._locks.setdefault(network, asyncio.Lock())

    def _on_loopback(self, address: str, entry: NamespaceFiles | None = None) -> NodePlace:
        # Tells the node which of the many loopback addresses is its own.
        return NodePlace(address, [self.endpoint], {"TRAINYARD_NODE_ADDRESS": address}, entry)


def _stop_serving(placed: _PlacedRun) -> None:
    for stop in placed.stop_serving:
        stop()


def lost_evidence(run: str) -> Mapping[str, Any]:
    return evidence.build_evidence(run, LOST, ())
