# SPDX-License-Identifier: Apache-2.0
"""What a review compares, and what a platform answers about it: who can reach and do what, what is lost, what it costs.

A review never asks a cloud. Both sides of a change are snapshots: what a stack's program asks of Pulumi, as plain
values. Snapshots are JSON between two releases of trainyard, each of which ran its own code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

# In a resource's inputs: what only a cloud knows, and what nobody may read.
UNKNOWN, SECRET = "(unknown)", "(secret)"
EVERY_PORT = (0, 65535)
OUTSIDE = "anywhere outside"
# The principal whose abilities everybody has.
EVERYBODY = "everybody"
# Who may do what a statement says that could not be read.
UNREAD = "whoever is named in what cannot be read here"


@dataclass(frozen=True, slots=True)
class ReviewedResource:
    """One resource as a program asks for it. `urn` ends with its type and name.

    `secrets`: where its inputs hold secrets, and a digest of what the stack file has there, encrypted: a secret that
    was changed shows, its value does not. `trigger`: a change of this text replaces it.
    """

    type: str
    name: str
    urn: str
    parent: str
    inputs: Mapping[str, Any]
    protect: bool = False
    retain: bool = False
    custom: bool = True  # made in a cloud; a component only holds others
    replaced_for: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    id: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)
    trigger: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stack at one commit. `plan`: its plan as JSON, without secrets. `refused`: why its program would not go on."""

    stack: str
    platform: str
    plan: Mapping[str, Any]
    resources: tuple[ReviewedResource, ...]
    remarks: tuple[str, ...] = ()
    refused: str = ""

    def of(self, *types: str) -> tuple[ReviewedResource, ...]:
        return tuple(one for one in self.resources if one.type in types)


@dataclass(frozen=True, slots=True, order=True)
class Passage:
    """What one rule lets through at the nodes of `where` (a subnet, those of a security group).

    `peer` is an address block, or a name that stands for its members (`the nodes`, `the region's services`); `but`:
    blocks inside it that are not meant. Ports of ICMP are 256 x type + code.
    """

    where: str
    direction: Literal["ingress", "egress"]
    protocol: str  # "tcp", "udp", "icmp", a number, "all", or "all but tcp, udp"
    peer: str
    ports: tuple[int, int] = EVERY_PORT
    source_ports: tuple[int, int] = EVERY_PORT
    but: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Network:
    """The passages of a stack. `inside`: address blocks and names that belong to it: all else is outside.

    `unjudged` says why they are not known: the subnet is somebody else's. `public`: where nodes have public addresses.
    `ways`: routes that lead out of its networks, in words. `nodes` is the `where` of the nodes that train, and
    `addresses` are the peers that stand for all of them. Nodes reach the platform's services if they reach one peer of
    each row of `services`.
    """

    passages: tuple[Passage, ...] = ()
    inside: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    unjudged: str = ""
    ways: tuple[str, ...] = ()
    nodes: str = ""
    addresses: tuple[str, ...] = ()
    services: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class Ability:
    """Something that a principal may do: `group vision-scientists`, `OBJECT_READ`, `bucket vision-dev`."""

    principal: str
    operation: str
    resource: str


@dataclass(frozen=True, slots=True)
class Loss:
    """What goes with a resource that is deleted or replaced, and how not to lose it. Both are sentences."""

    words: str
    avoid: str = ""


@dataclass(frozen=True, slots=True)
class Machines:
    """What the nodes of one job cost. `usd_per_hour` and `accelerators` are for one node; None: not known.

    `stays`: machines are there between runs; after `idle_minutes` without one they stop (0: never). `retries`: how
    often the platform itself tries a node again.
    """

    shape: str
    nodes: int
    accelerators: float | None = 0
    usd_per_hour: float | None = None
    source: str = ""
    stays: bool = False
    idle_minutes: int = 0
    retries: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """Something that costs money while the stack is up, whether or not anything runs."""

    what: str
    usd_per_hour: float | None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Costs:
    """By job; and what stands beside the jobs."""

    jobs: Mapping[str, Machines] = field(default_factory=dict)
    standing: tuple[Standing, ...] = ()


class ReviewPlatform(Protocol):
    """What has a body is what most platforms answer: a platform's own class inherits it."""

    def network(self, side: Snapshot) -> Network:
        """What the rules of a snapshot let through. Evaluated from the resources, not from the plan."""
        return Network(unjudged="this platform has no network rules")

    def abilities(self, sides: Sequence[Snapshot]) -> tuple[frozenset[Ability], ...]:
        """Who may do what, on each side: every principal, operation and resource that any side names is asked of all.

        A resource that no side names stands for all others: `any other bucket`. What cannot be read is an ability too,
        of UNREAD: nothing is left out in silence.
        """
        return tuple(frozenset() for _ in sides)

    def statements(self, side: Snapshot) -> tuple[str, ...]:
        """Those of its policies that a rehearsal counts, as its report writes them."""
        return ()

    def without_statements(self, side: Snapshot, texts: frozenset[str]) -> Snapshot:
        """The same snapshot without some of them."""
        return side

    def operation_words(self, operations: frozenset[str]) -> str:
        """These operations on one kind of resource, as a person would say it: `read objects`."""
        return ", ".join(sorted(operations))

    def resource_words(self, resources: frozenset[str]) -> str:
        """Several resources on which a principal may do the same: `bucket vision-dev`, `any bucket`."""
        return ", ".join(sorted(resources))

    def covers(self, resource: str, other: str) -> bool:
        """Whether who may do something with `resource` may do the same with `other`: everything covers a bucket."""
        return False

    def loss(self, resource: ReviewedResource) -> Loss | None:
        """What goes with it. None: nothing that anybody would miss."""
        return None

    def replacing_inputs(self, before: ReviewedResource, after: ReviewedResource) -> tuple[str, ...]:
        """The paths of inputs whose change replaces it. Empty: it is changed in place, or not at all."""
        from components.platform.replacing import replacing_inputs

        return replacing_inputs(before, after)

    def costs(self, side: Snapshot, prices: Mapping[str, Any]) -> Costs:
        """`prices`: a team's own rows, which come before those of the catalog."""
        return Costs()
