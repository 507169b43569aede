# SPDX-License-Identifier: Apache-2.0
"""The rows of AWS's machines and accelerators as values, and the network interfaces with which a machine starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any, Final, Literal

from catalog.tables import table

InterfaceKind = Literal["interface", "efa", "efa-only"]
ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
CAPACITY_BLOCK: Final = "capacity-block"
Market = Literal["on-demand", "spot", "capacity-block"]
# AWS ends the machines of a capacity block so long before the block itself.
BLOCK_MACHINES_END_BEFORE: Final = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Interface:
    """`interface` is an ordinary one, `efa` an ordinary one and an EFA in one, and `efa-only` has no address."""

    card: int
    device: int
    kind: InterfaceKind

    @property
    def has_address(self) -> bool:
        return self.kind != "efa-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsMachine:
    """A row. aws_machines.toml explains the columns."""

    name: str
    vcpus: int
    memory_gb: float
    accelerator: str
    accelerators: int = 0
    processes: int = 0
    model: str = ""
    disks: int = 0
    disk_gb: int = 0
    network_cards: int
    interfaces_per_card: int
    efa_interfaces: int = 0
    efa_from_card: int = 0
    layout: str = ""
    blocks: bool = False
    quota: str
    not_offered_since: str = ""

    def interfaces(self, efa: int) -> tuple[Interface, ...]:
        """The interfaces of a machine that starts with so many EFA interfaces.

        As AWS recommends for accelerated machines, the primary one is ordinary, and each EFA is `efa-only`: on card 0
        beside the primary, on each further card as its first device. A single EFA on card 0 is the primary itself:
        it takes the one address all the same, and only a machine with one interface gets an automatic public address.
        """
        if self.layout == "efa":
            kind: InterfaceKind = "efa" if efa else "interface"
            return tuple(Interface(card, min(card, 1), kind) for card in range(max(1, efa)))
        if efa == 1 and self.efa_from_card == 0:
            return (Interface(0, 0, "efa"),)
        cards = range(self.efa_from_card, self.efa_from_card + efa)
        return (Interface(0, 0, "interface"), *(Interface(card, int(card == 0), "efa-only") for card in cards))


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """A row. aws_accelerators.toml explains the columns."""

    name: str
    words: str
    runtime: str = ""
    docker: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    meets: Mapping[str, str] = field(default_factory=dict)
    transport: Mapping[str, str] = field(default_factory=dict)
    reserved: Mapping[str, str] = field(default_factory=dict)
    shows: tuple[str, ...] = ()
    listed: str = "lines"
    late: float = 0
    known_to_nodes: bool = False
    base: str = ""
    backends: tuple[str, ...] = ()
    # None: all frameworks.
    trains: tuple[str, ...] | None = None
    why: str = ""
    imports: str = ""
    remedy: str = ""
    image: str = ""
    release: str = ""
    releases: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    oldest: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cache: str = ""
    host_nic: bool = False
    traffic: str = ""
    ami: str = ""


@dataclass(frozen=True, slots=True)
class VcpuQuota:
    """A limit of the account on the vCPUs of its running machines. Machines of several rows may share one."""

    code: str
    words: str


@cache
def aws_machine(name: str) -> AwsMachine | None:
    """The row of an instance type. None if the catalog does not have it."""
    row = table("aws_machines")["machines"].get(name)
    return None if row is None else AwsMachine(name=name, **row)


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """Every accelerator that a machine of AWS may have, by its name."""
    return {name: Accelerator(name=name, **_with_tuples(row)) for name, row in table("aws_accelerators").items()}


def _with_tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


@cache
def accelerator_of_machine(name: str) -> Accelerator | None:
    """The accelerator of an instance type. None if the catalog does not have the type."""
    machine = aws_machine(name)
    return None if machine is None else accelerators()[machine.accelerator]


def vcpu_quota(machine: AwsMachine, market: str) -> VcpuQuota | None:
    """The quota that a machine counts against. None if it is unknown, and in a capacity block, which has none."""
    row = table("aws_machines")["quotas"][machine.quota]
    code = row.get(market.replace("-", "_"))
    return VcpuQuota(code, row["words"]) if code else None
