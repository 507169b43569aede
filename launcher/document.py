# SPDX-License-Identifier: Apache-2.0
"""Reads the launch document (schemas/launch.schema.json) that the platform put into the environment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from launcher import platforms
from launcher.errors import LaunchError
from launcher.platforms import GitRepository, Identity

VARIABLE = "TRAINYARD_LAUNCH"
# A key that older images would ignore raises the version, so that they refuse the document: 2 a wait, 3 code that the
# document names, 4 files to keep, 5 ports that the platform reserves, 6 another system that the script speaks.
VERSIONS = (1, 2, 3, 4, 5, 6)
# Frameworks with an elastic mode, by the name of their option.
_ELASTIC = ("horovod", "torchrun")
# The default of documents without `stallMinutes`.
STALL_MINUTES = 30


@dataclass(frozen=True)
class Role:
    """A set of like nodes, and how many of them decide that the run has failed or succeeded."""

    name: str
    replicas: int
    service: bool
    min_failed: int
    min_succeeded: int | None


@dataclass(frozen=True)
class Port:
    """Range None: any port. `reserved`: how many ports the platform reserves for each node that listens."""

    range: tuple[int, int] | None
    listens: bool
    pinned: str
    reserved: int = 0


@dataclass(frozen=True)
class Awaited:
    """A port that must answer before the command starts, on the first node of a role or on `every` one. `label` names a
    port that the platform reserves."""

    role: str
    port: int
    every: bool = False
    label: str = ""


@dataclass(frozen=True)
class Launch:
    """One node's part in a run, and who the node is to its platform."""

    identity: Identity
    stack: str
    job: str
    name: str
    attempt: int
    framework: str
    strategy: str | None
    node: str
    rank: int
    role: str
    roles: tuple[Role, ...]
    gang: bool
    folder: str | None
    checkpoints: str | None
    git: GitRepository | None
    peers: Mapping[str, Any]
    ports: Mapping[str, Port]
    start: tuple[str, ...]
    wrap: tuple[str, ...]
    command: tuple[str, ...]
    processes: int
    awaits: tuple[Awaited, ...]
    awaits_command: tuple[str, ...]
    environment: Mapping[str, str]
    options: Mapping[str, Any]
    retries: int
    stall_minutes: int
    packages: str
    secrets: tuple[str, ...]
    keep: tuple[str, ...]
    speaks: tuple[str, ...]

    @property
    def run(self) -> str:
        """The run's name for people."""
        return f"{self.job}/{self.name}"

    @property
    def nodes(self) -> int:
        """How many nodes take part."""
        return sum(role.replicas for role in self.roles)

    @property
    def service(self) -> bool:
        """Whether this node runs until the others have ended."""
        return self.role_of(self.rank).service

    @property
    def served(self) -> bool:
        """Whether the run has services: nodes that run until the others have ended."""
        return any(role.service and role.replicas for role in self.roles)

    @property
    def elastic(self) -> bool:
        """Whether the framework's elastic mode is on: nodes may leave and join while the others go on."""
        return self.framework in _ELASTIC and bool(self.options.get("elastic"))

    @property
    def fewest(self) -> int:
        """The smallest number of nodes with which training goes on."""
        least = int(self.options.get("minNodes") or 0)
        return min(least or self.nodes, self.nodes) if self.elastic else self.nodes

    def uses_placeholder(self, placeholder: str) -> bool:
        """Whether anything that this node starts contains the placeholder."""
        texts = (*self.start, *self.wrap, *self.command, *self.awaits_command, *self.environment.values())
        return any(placeholder in text for text in texts)

    def spares(self, rank: int, gone: int) -> bool:
        """Whether training goes on without this node. `gone`: how many nodes are gone, this one included. It never goes
        on without rank 0."""
        return rank != 0 and self.nodes - gone >= self.fewest

    def role_of(self, rank: int) -> Role:
        """The role of the node with this rank."""
        first = 0
        for role in self.roles:
            if first <= rank < first + role.replicas:
                return role
            first += role.replicas
        raise LaunchError(f"the run has no rank {rank}: it has {self.nodes} nodes. Start it again through its stack")

    def ranks_of(self, name: str) -> range:
        """The ranks of a role's nodes."""
        first = 0
        for role in self.roles:
            if role.name == name:
                return range(first, first + role.replicas)
            first += role.replicas
        raise LaunchError(f"the run has no role `{name}`; it has {', '.join(role.name for role in self.roles)}")

    def port_numbers(self, label: str, rank: int) -> Sequence[int]:
        """The ports of a label on a node, or on the first node that listens there if this one does not. Empty: any
        port."""
        port = self.ports[label]
        if not port.reserved:
            return range(port.range[0], port.range[1] + 1) if port.range else ()
        first = [self.ranks_of(role.name)[0] for role in self.roles if role.replicas]
        for other in first if rank == self.rank and not port.listens else (rank, *first):
            role = self.role_of(other)
            numbers = self.identity.ports(label, role.name, other - self.ranks_of(role.name)[0])
            if numbers:
                return numbers
        raise LaunchError(f"the platform reserves no ports by the label `{label}`: start the run through its stack")

    def awaited_port(self, awaited: Awaited, rank: int) -> int:
        """The number of an awaited port on one node."""
        return self.port_numbers(awaited.label, rank)[0] if awaited.label else awaited.port

    def label(self, rank: int) -> str:
        """A rank for people: `3 (worker-2)`."""
        role = self.role_of(rank)
        return f"{rank} ({role.name}-{rank - self.ranks_of(role.name)[0]})"


def read_launch(environment: Mapping[str, str]) -> Launch:
    """Reads the document from the environment. LaunchError if it cannot be used."""
    text = environment.get(VARIABLE)
    if not text:
        raise LaunchError(f"{VARIABLE} is not set: start this image through a trainyard job, or give it a command")
    try:
        document: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LaunchError(f"{VARIABLE} is not JSON ({error}): it is written by trainyard, not by hand") from None
    found = document.get("version") if isinstance(document, dict) else None
    if found not in VERSIONS:
        read_here = " and ".join(map(str, VERSIONS))
        raise LaunchError(f"{VARIABLE} has version {found}, this image reads {read_here}: rebuild the image")
    try:
        launch = _parse_launch(document, platforms.identity_of(document, environment))
        launch = replace(launch, gang=launch.gang and not launch.elastic)
    except KeyError as error:
        raise LaunchError(
            f"{VARIABLE} lacks {error}: rebuild the image, or use the trainyard it was built with"
        ) from None
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise LaunchError(f"{VARIABLE} is not a launch document: {error}") from None
    if launch.role_of(launch.rank).name != launch.role:
        raise LaunchError(
            f"rank {launch.rank} belongs to the role `{launch.role_of(launch.rank).name}`, and this node is a"
            f" `{launch.role}`: the platform numbered the nodes in another order than the plan"
        )
    return launch


def _parse_launch(document: Mapping[str, Any], identity: Identity) -> Launch:
    return Launch(
        identity=identity,
        stack=document["stack"],
        job=document["job"],
        name=document["run"],
        attempt=document["attempt"],
        framework=document["framework"],
        strategy=document["strategy"],
        node=document["node"],
        rank=int(document["rank"]) if document["rank"] is not None else identity.rank(),
        role=document["role"],
        roles=tuple(
            Role(row["name"], row["replicas"], row["service"], row["minFailed"], row["minSucceeded"])
            for row in document["roles"]
        ),
        gang=document["gang"],
        folder=document["folder"],
        checkpoints=document["checkpoints"],
        git=GitRepository(**document["code"]["git"]) if "code" in document else identity.git(),
        peers=dict(document["peers"]),
        ports={label: _parse_port(row) for label, row in document["ports"].items()},
        start=tuple(document["start"]),
        wrap=tuple(document["wrap"]),
        command=tuple(document["command"]),
        processes=document["processes"],
        awaits=tuple(_parse_awaited(row) for row in document["awaits"]),
        awaits_command=tuple(document.get("awaitsCommand", ())),
        environment=dict(document["environment"]),
        options=dict(document["options"]),
        retries=document["retry"]["count"],
        stall_minutes=int(document.get("stallMinutes", STALL_MINUTES)),
        packages=str(document.get("packages", "")),
        secrets=tuple(document["secrets"]),
        keep=tuple(document.get("keep", ())),
        speaks=tuple(document.get("speaks", ())),
    )


def _parse_port(row: Mapping[str, Any]) -> Port:
    pair = row["range"]
    numbers = None if pair is None else (pair[0], pair[1])
    return Port(numbers, row["listens"], row["pinned"], int(row.get("reserved", 0)))


def _parse_awaited(row: Mapping[str, Any]) -> Awaited:
    label = str(row.get("label", ""))
    return Awaited(row["role"], 0 if label else row["port"], row.get("every", False), label)
