# SPDX-License-Identifier: Apache-2.0
"""The interface of the hosts: a dispatcher gives them assignments, which are runs to carry out, and gets results."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from localcloud.hosts.firewall import FirewallRule


class CannotStartError(Exception):
    """The run cannot start. The text is for its user."""


@dataclass(frozen=True)
class Group:
    """Equal nodes of a run. A run without named groups is one group without a name."""

    name: str
    replicas: int
    minimum_success: int


@dataclass(frozen=True)
class Outline:
    """The facts that decide how a run has ended. `minutes` 0: no time limit."""

    groups: Sequence[Group]
    minutes: int

    @property
    def groups_by_rank(self) -> list[str]:
        """The group of each node, by rank."""
        return [group.name for group in self.groups for _ in range(group.replicas)]


@dataclass(frozen=True)
class RunCode:
    """A file or an archive. Each node gets a copy in `folder` of its home. `entry` is the name of the setting that
    chooses which file of an archive to start."""

    file: Path
    name: str
    entry: str
    folder: str


@dataclass(frozen=True)
class WholeMachine:
    """A node that is a whole machine: its processes are root inside, and have no rights outside. `kept`: folders on its
    disk; `fresh`: folders that are empty at each start. `files`: written at its first start. `shown`: stand-in
    programs, as (path on this machine, path inside). `given`: where it sees the files that the cloud gives it."""

    kept: tuple[str, ...]
    fresh: tuple[str, ...]
    files: Mapping[str, str]
    shown: tuple[tuple[str, str], ...]
    given: str


@dataclass(frozen=True)
class NodeWork:
    """The work of one node. It starts `command`, or the file `script` of the code if that is empty, with `arguments`.
    `stands_in`: the local environment in place of its image. Memory and disk are in bytes, 0 if not given."""

    command: tuple[str, ...]
    arguments: tuple[str, ...]
    script: str
    # Makes the variables from the services' endpoints and the folder of given files, as the node sees them.
    environment: Callable[[Sequence[str], str], Mapping[str, str]]
    stands_in: str
    image: str
    memory: int
    disk: int
    machine: WholeMachine | None = None


@dataclass(frozen=True)
class MountedFiles:
    """Files that the nodes see below the path `target`. Each is a hard link to a file elsewhere."""

    target: str
    files: Sequence[tuple[str, Path]]


@dataclass(frozen=True)
class SharedFolder:
    """A folder of this machine that nodes of several runs share. They see it at the path `target`."""

    target: str
    folder: Path
    read_only: bool = False


@dataclass(frozen=True)
class NetworkReach:
    """The rules and routes in force for a node: its firewall rules, and the address blocks that its router reaches."""

    rules: tuple[FirewallRule, ...]
    destinations: tuple[str, ...]


@dataclass(frozen=True)
class Subnet:
    """The subnet of a run's nodes. Subnets of one `network` may reach each other. Those of two networks never do."""

    id: str
    network: str
    router: str
    router_hardware: str
    prefix_length: int


@dataclass(frozen=True)
class Interface:
    """A node's interface in its subnet. `reach` returns the rules and routes now in force; None: the subnet is gone."""

    id: str
    address: str
    hardware: str
    reach: Callable[[], NetworkReach | None]


def hardware_address(address: str) -> str:
    """The hardware address for an IP address. It is always the same."""
    return "02:" + ":".join(f"{byte:02x}" for byte in hashlib.sha256(address.encode()).digest()[:5])


async def _no_upkeep() -> None:
    """Renews nothing: no file or credential of the run expires, or its nodes renew them."""


@dataclass(frozen=True)
class Assignment:
    """One run. Without a subnet it has no interfaces, and its nodes share a loopback of their own."""

    id: str
    name: str
    folder: Path
    outline: Outline
    works: Sequence[NodeWork]
    code: RunCode | None
    mounts: Sequence[MountedFiles]
    subnet: Subnet | None
    interfaces: Sequence[Interface]
    # By a node's group and rank: the function that takes the node's output.
    lines: Callable[[str, int], Callable[[Sequence[bytes]], None]]
    # Runs until the run has ended.
    upkeep: Callable[[], Awaitable[None]] = _no_upkeep
    keeps_disks: bool = False
    shared: Sequence[SharedFolder] = ()
    # The user that its processes run as. Runs that share folders have the same one. Empty: the run has its own user.
    user: str = ""
    # The bytes of a small disk, as a fault has it: writing more fails as on a full disk. 0: the disk of the machine.
    small_disk: int = 0


@dataclass(frozen=True)
class RunVerdict:
    """A terminal state (or IN_PROGRESS), why, and the state of each named group."""

    state: str
    details: str
    groups: tuple[tuple[str, str], ...] = ()


class Dispatcher(Protocol):
    """Gives runs to the hosts, and receives reports of their progress. As long as a platform says nothing else, the
    hosts do not start runs again after a kill of the cloud."""

    def unfinished(self) -> Iterable[tuple[str, bool]]:
        """The runs that have not ended, and whether each is to be canceled."""
        return ()

    def outline(self, run: str) -> Outline | None:
        """The run's outline. None if its job was deleted. CannotStartError: the run itself was deleted."""
        return None

    async def assignment(self, run: str, folder: Path) -> Assignment:
        """The run's assignment. CannotStartError: the run may not use a part of it."""

    def begins_again(self, run: str) -> None:
        """Notes that the run starts again, because the cloud and its hosts were killed."""
        return

    def started(self, run: str) -> None:
        """Notes that all nodes of the run have started."""
        return

    def ended(self, run: str, verdict: RunVerdict, folder: Path) -> None:
        """Notes how the run ended. None of its nodes runs any more."""


def judge_run_results(outline: Outline, results: Mapping[int, Mapping[str, Any]]) -> RunVerdict:
    """FAILED as soon as a group cannot reach its minimum any more, SUCCEEDED once all nodes have ended."""
    groups, names = outline.groups, outline.groups_by_rank
    states = []
    reasons = []
    for group in groups:
        ranks = [rank for rank, name in enumerate(names) if name == group.name]
        ended = {rank: (results[rank]["reason"], results[rank].get("code")) for rank in ranks if rank in results}
        failed = [rank for rank, end in ended.items() if end != ("exited", 0)]
        if len(ranks) - len(failed) < group.minimum_success:
            states.append("FAILED")
            reasons.append(_describe_node_failure(group, failed[0], results[failed[0]], outline.minutes))
        else:
            states.append("SUCCEEDED" if all(rank in results for rank in ranks) else "IN_PROGRESS")
    state = next((state for state in ("FAILED", "IN_PROGRESS") if state in states), "SUCCEEDED")
    named = tuple((group.name, state) for group, state in zip(groups, states, strict=True) if group.name)
    return RunVerdict(state, reasons[0] if reasons else "", named)


def _describe_node_failure(group: Group, rank: int, result: Mapping[str, Any], minutes: int) -> str:
    where = f"Node {rank} of group {group.name}: " if group.name else ""
    code = result.get("code")
    if result["reason"] == "time limit":
        return f"{where}The job run exceeded its maximum runtime of {minutes} minutes"
    if result["reason"] == "unstartable":
        return f"{where}The command could not be started: {result['detail']}"
    if result["reason"] == "refused":
        return f"{where}{result['detail']}"
    if result["reason"] == "stopped":
        return f"{where}The host was stopped while the run was in progress"
    if result["reason"] == "lost":
        return f"{where}The host was lost: {result['detail']}"
    more = f": {result['detail']}" if result.get("detail") else ""
    if result["reason"] == "limit":
        return f"{where}The job run was ended{more}"
    if code is not None and code < 0:
        return f"{where}The job run was killed by {signal.Signals(-code).name}{more}"
    return f"{where}The job run exited with code {code}{more}"
