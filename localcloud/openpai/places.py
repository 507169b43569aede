# SPDX-License-Identifier: Apache-2.0
"""Where tasks go: addresses of the cluster's network, and what each virtual cluster has left."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from localcloud.openpai.accounts import VIRTUAL_CLUSTERS, VirtualCluster
from localcloud.openpai.policies import JobPolicy, RolePolicy
from localcloud.openpai.tasks import CLUSTER_NETWORK

_NETWORK = ipaddress.IPv4Network(CLUSTER_NETWORK)
# The first addresses are the network's own: its name, its router, and room for others.
_FIRST = 16
_NAMES = ("gpu", "cpu", "memory", "pod")


@dataclass(frozen=True)
class Resources:
    """What tasks need, or a virtual cluster has. `pod`: how many tasks."""

    gpu: int = 0
    cpu: int = 0
    memory: int = 0
    pod: int = 0

    def plus(self, other: Resources) -> Resources:
        return Resources(**{name: getattr(self, name) + getattr(other, name) for name in _NAMES})

    def minus(self, other: Resources) -> Resources:
        return Resources(**{name: getattr(self, name) - getattr(other, name) for name in _NAMES})

    def times(self, count: int) -> Resources:
        return Resources(**{name: getattr(self, name) * count for name in _NAMES})

    def lacks(self, need: Resources) -> list[str]:
        """What this has too little of."""
        return [name for name in _NAMES if getattr(self, name) < getattr(need, name)]


def needs(role: RolePolicy) -> Resources:
    return Resources(role.gpus, role.cpus, role.memory_mb, 1)


def needs_of_job(policy: JobPolicy) -> Resources:
    return sum_of(needs(role).times(role.instances) for role in policy.roles)


class Places:
    """Addresses and resources that attempts of tasks hold. `limit` may set what a virtual cluster has."""

    def __init__(self, limit: Callable[[str], int | None]) -> None:
        self._limit = limit
        self._next = _FIRST
        self._addresses: set[int] = set()
        self._held: dict[str, tuple[str, Resources, int]] = {}
        self._used: dict[str, Resources] = {}

    def total(self, cluster: VirtualCluster) -> Resources:
        """What a virtual cluster has. Limits of the local cloud stand in for what a real one shares out."""
        own = {"gpu": cluster.gpus, "cpu": cluster.cpus, "memory": cluster.memory_mb, "pod": cluster.pods}
        limits = {name: self._limit(f"openpai.{cluster.name}.{name}") for name in own}
        return Resources(**{name: own[name] if (value := limits[name]) is None else value for name in own})

    def used(self, cluster: str) -> Resources:
        return self._used.get(cluster, Resources())

    def lacking(self, cluster: str, need: Resources) -> list[str]:
        """What a virtual cluster has too little of at the moment."""
        row = next((each for each in VIRTUAL_CLUSTERS if each.name == cluster), None)
        return self.total(row).minus(self.used(cluster)).lacks(need) if row else ["virtual cluster"]

    def take(self, attempt: str, cluster: str, need: Resources, address: str = "") -> str:
        """Gives an attempt its place, and returns its address: this one, or a free one."""
        number = int(ipaddress.IPv4Address(address)) - int(_NETWORK[0]) if address else self._free()
        self._addresses.add(number)
        self._held[attempt] = (cluster, need, number)
        self._used[cluster] = self.used(cluster).plus(need)
        return str(_NETWORK[number])

    def free(self, attempt: str) -> None:
        if held := self._held.pop(attempt, None):
            cluster, need, number = held
            self._addresses.discard(number)
            self._used[cluster] = self.used(cluster).minus(need)

    def clear(self) -> None:
        self._addresses.clear()
        self._held.clear()
        self._used.clear()

    def _free(self) -> int:
        """The address that was free for the longest time, so that nobody meets a former task at it."""
        last = _NETWORK.num_addresses - 2
        for _ in range(last):
            number, self._next = self._next, self._next + 1 if self._next < last else _FIRST
            if number not in self._addresses:
                return number
        raise RuntimeError("the cluster's network has no free address")


def sum_of(each: Iterable[Resources]) -> Resources:
    total = Resources()
    for one in each:
        total = total.plus(one)
    return total
