# SPDX-License-Identifier: Apache-2.0
"""What the hosts take: a run to carry out, who gives it to them, and who hears how it goes. No API is known here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from localcloud.hosts.rules import FirewallRule


class CannotStartError(Exception):
    """Why no process can be started, in words for whoever started the run."""


@dataclass(frozen=True)
class Group:
    """Like nodes of a run; a run without named groups is one group without a name."""

    name: str
    replicas: int
    minimum_success: int


@dataclass(frozen=True)
class Outline:
    """What it takes to judge how a run ended. `minutes` 0: it may run for ever."""

    groups: Sequence[Group]
    minutes: int

    @property
    def placed(self) -> list[str]:
        """By rank, the group of each node."""
        return [group.name for group in self.groups for _ in range(group.replicas)]


@dataclass(frozen=True)
class RunCode:
    """A file, or an archive, that each node gets a copy of. `entry` is what its owner calls the choice of the file of
    an archive to start. `folder` is where a copy lies in a node's home."""

    file: Path
    name: str
    entry: str
    folder: str


@dataclass(frozen=True)
class NodeWork:
    """What one node is to do. `command` empty: the file `script` of the code; `arguments` follow either. `stands_in` is
    the local environment that stands in for its image. Memory and disk in bytes; 0: nobody says how much."""

    command: tuple[str, ...]
    arguments: tuple[str, ...]
    script: str
    # Of where services answer, as the node reaches them, and of the folder of what the run is given, as it sees that.
    environment: Callable[[Sequence[str], str], Mapping[str, str]]
    stands_in: str
    image: str
    memory: int
    disk: int


@dataclass(frozen=True)
class MountedFiles:
    """Files that the nodes see below a path; each is another name of one that lies elsewhere."""

    target: str
    files: Sequence[tuple[str, Path]]


@dataclass(frozen=True)
class NetworkReach:
    """What is in force for one node: its rules, and the blocks that its router leads to."""

    rules: tuple[FirewallRule, ...]
    destinations: tuple[str, ...]


@dataclass(frozen=True)
class Subnet:
    """Where the nodes of a run stand. Subnets of one `network` may reach one another, those of two never do."""

    id: str
    network: str
    router: str
    router_hardware: str
    prefix_length: int


@dataclass(frozen=True)
class Interface:
    """A node's place in its subnet. `reach` says what is in force now; None once the subnet is gone."""

    id: str
    address: str
    hardware: str
    reach: Callable[[], NetworkReach | None]


@dataclass(frozen=True)
class Assignment:
    """One run. Without a subnet there are no interfaces, and its nodes stand on a loopback of their own."""

    id: str
    name: str
    folder: Path
    outline: Outline
    works: Sequence[NodeWork]
    code: RunCode | None
    mounts: Sequence[MountedFiles]
    subnet: Subnet | None
    interfaces: Sequence[Interface]
    # Takes what a node prints, line by line: by its group and its rank.
    lines: Callable[[str, int], Callable[[Sequence[bytes]], None]]
    # Goes on for as long as the run lives.
    upkeep: Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class RunVerdict:
    """A terminal state (or IN_PROGRESS), why, and the state of each named group."""

    state: str
    details: str
    groups: tuple[tuple[str, str], ...] = ()


class Dispatcher(Protocol):
    """Gives runs to the hosts, and hears of them."""

    def unfinished(self) -> Iterable[tuple[str, bool]]:
        """The runs that are still to run, and whether somebody has asked to cancel them."""

    def outline(self, run: str) -> Outline | None:
        """None where nobody can say any more what the run was; CannotStartError where it is gone."""

    async def assignment(self, run: str, folder: Path) -> Assignment:
        """Everything a run is given; CannotStartError where it may not have it."""

    def begins_again(self, run: str) -> None:
        """Its hosts were lost with a cloud that was killed."""

    def started(self, run: str) -> None:
        """All its nodes run."""

    def ended(self, run: str, verdict: RunVerdict, folder: Path) -> None:
        """None of its nodes runs any more."""
