# SPDX-License-Identifier: Apache-2.0
"""Virtual clusters and their resources, and what task attempts use of them: resources, and addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from localcloud.openpai.policies import JobPolicy, RolePolicy
from localcloud.openpai.tasks import CLUSTER_NETWORK

_NETWORK = ipaddress.IPv4Network(CLUSTER_NETWORK)
# The first address for tasks. The ones before are reserved for the network and its router.
_FIRST = 16
_NAMES = ("gpu", "cpu", "memory", "pod")


@dataclass(frozen=True)
class VirtualCluster:
    """A share of the cluster, with its resources."""

    name: str
    gpus: int
    cpus: int
    memory_mb: int
    pods: int


VIRTUAL_CLUSTERS = (
    VirtualCluster("default", 4096, 65_536, 256 * 1024 * 1024, 4096),
    VirtualCluster("reserved", 64, 1024, 4 * 1024 * 1024, 64),
)


@dataclass(frozen=True)
class Resources:
    """Resources that tasks need, or that a virtual cluster has. `pod`: the number of tasks."""

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
        """The names of the resources that are too few for a need."""
        return [name for name in _NAMES if getattr(self, name) < getattr(need, name)]


def role_needs(role: RolePolicy) -> Resources:
    return Resources(role.gpus, role.cpus, role.memory_mb, 1)


def job_needs(policy: JobPolicy) -> Resources:
    return sum_resources(role_needs(role).times(role.instances) for role in policy.roles)


class Allocations:
    """The addresses and resources that task attempts use. `limit` may override the resources of virtual clusters."""

    def __init__(self, limit: Callable[[str], int | None]) -> None:
        self._limit = limit
        self._next = _FIRST
        self._addresses: set[int] = set()
        self._held: dict[str, tuple[str, Resources, int]] = {}
        self._used: dict[str, Resources] = {}

    def total(self, cluster: VirtualCluster) -> Resources:
        """The resources of a virtual cluster. Limits of the local cloud override them."""
        own = {"gpu": cluster.gpus, "cpu": cluster.cpus, "memory": cluster.memory_mb, "pod": cluster.pods}
        limits = {name: self._limit(f"openpai.{cluster.name}.{name}") for name in own}
        return Resources(**{name: own[name] if (value := limits[name]) is None else value for name in own})

    def used(self, cluster: str) -> Resources:
        return self._used.get(cluster, Resources())

    def lacking(self, cluster: str, need: Resources) -> list[str]:
        """The resources of which a virtual cluster has too few free at the moment."""
        row = next((each for each in VIRTUAL_CLUSTERS if each.name == cluster), None)
        return self.total(row).minus(self.used(cluster)).lacks(need) if row else ["virtual cluster"]

    def allocate(self, attempt: str, cluster: str, need: Resources, address: str = "") -> str:
        """Allocates resources and an address for an attempt. Returns the address: the given one, or a free one."""
        number = int(ipaddress.IPv4Address(address)) - int(_NETWORK[0]) if address else self._free_address()
        self._addresses.add(number)
        self._held[attempt] = (cluster, need, number)
        self._used[cluster] = self.used(cluster).plus(need)
        return str(_NETWORK[number])

    def release(self, attempt: str) -> None:
        if held := self._held.pop(attempt, None):
            cluster, need, number = held
            self._addresses.discard(number)
            self._used[cluster] = self.used(cluster).minus(need)

    def clear(self) -> None:
        self._addresses.clear()
        self._held.clear()
        self._used.clear()

    def _free_address(self) -> int:
        """The address that has been free for the longest time, so that a new task is not mistaken for a former one."""
        last = _NETWORK.num_addresses - 2
        for _ in range(last):
            number, self._next = self._next, self._next + 1 if self._next < last else _FIRST
            if number not in self._addresses:
                return number
        raise RuntimeError("the cluster's network has no free address")


def sum_resources(each: Iterable[Resources]) -> Resources:
    total = Resources()
    for one in each:
        total = total.plus(one)
    return total
