# SPDX-License-Identifier: Apache-2.0
"""The values that a review compares, and the interface of a platform for reviews: network, access, losses and costs.

A review never calls a cloud. Both sides of a change are snapshots: the resources that a stack's program registers with
Pulumi, as plain values. If the sides are of two releases of trainyard, each runs its own code, and snapshots are passed
as JSON.

`OfflineCloud` replaces a platform's cloud while a program is recorded (docs/review.md). Values that only the cloud
knows are texts that begin with UNKNOWN. They are equal on both sides, so they make no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog.nested import walk_texts
from catalog.platforms import Capability
from components.values.protocols import EVERY_PROTOCOL, protocol_name
from components.values.resource_types import (
    LostWith,
    Part,
    ResourceType,
    find_resource_type,
    resource_types_of_platform,
)
from components.values.security_rules import LAST_PORT, Direction, Ports, SecurityRule

# Replace values in a resource's inputs: those that only a cloud knows, and secrets.
UNKNOWN, SECRET = "(unknown)", "(secret)"
EVERY_PORT = (0, LAST_PORT)
_CODES = 256
OUTSIDE = "anywhere outside"
# The principal that represents all others, which have its abilities, too.
EVERYBODY = "everybody"
# The principal of statements that could not be read.
UNREAD = "the principals of an unreadable statement"


@dataclass(frozen=True, slots=True)
class ReviewedResource:
    """One resource that a program registers. `urn` ends with its type and name.

    `secrets`: the paths of secrets in its inputs, with a digest of the encrypted text in the stack file, by which a
    changed secret is noticed without its value. `trigger`: a change of this text replaces the resource.
    """

    type: str
    name: str
    urn: str
    parent: str
    inputs: Mapping[str, Any]
    protect: bool = False
    retain: bool = False
    custom: bool = True  # False for a component, which only contains other resources
    replaced_for: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    id: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)
    trigger: str = ""
    provider: str | None = None  # the provider that the program names for it. None: not known. Empty: the default one


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stack at one commit. `plan`: its plan as JSON, without secrets. `refused`: why its program stopped."""

    stack: str
    platform: str
    plan: Mapping[str, Any]
    resources: tuple[ReviewedResource, ...]
    remarks: tuple[str, ...] = ()
    refused: str = ""

    def of(self, *types: str) -> tuple[ReviewedResource, ...]:
        return tuple(one for one in self.resources if one.type in types)

    def of_part(self, *parts: Part) -> tuple[ReviewedResource, ...]:
        """The resources that are this of the stack, by the rows of its platform's types."""
        return tuple(resource for resource, row in self.with_rows() if row.part in parts)

    def with_rows(self) -> Iterator[tuple[ReviewedResource, ResourceType]]:
        """The resources of types that the platform has rows for."""
        rows = resource_types_of_platform(self.platform)
        return ((resource, rows[resource.type]) for resource in self.resources if resource.type in rows)


@dataclass(frozen=True, slots=True, order=True)
class Passage:
    """What one rule allows for the nodes of `where` (of a subnet, or of a security group).

    `peer`: an address block, or the name of a set of addresses (`the nodes`, `the region's services`). `but`: excluded
    blocks inside it. Ports of ICMP are 256 x type + code.
    """

    where: str
    direction: Direction
    protocol: str  # "tcp", "udp", "icmp", a number, "all", or "all but tcp, udp"
    peer: str
    ports: tuple[int, int] = EVERY_PORT
    source_ports: tuple[int, int] = EVERY_PORT
    but: tuple[str, ...] = ()


def passage_of(where: str, rule: SecurityRule, peer: str) -> Passage:
    """What is not known of a rule counts as every protocol, or as every port."""
    protocol = protocol_name(rule.protocol if isinstance(rule.protocol, int | None) else EVERY_PROTOCOL)
    ports = _known_ports(rule.ports)
    if rule.icmp is not None and isinstance(rule.icmp[0], int):
        kind, code = rule.icmp
        first, last = (code, code) if isinstance(code, int) else (0, _CODES - 1)
        ports = (kind * _CODES + first, kind * _CODES + last)
    return Passage(where, rule.direction, protocol, peer, ports, _known_ports(rule.source_ports))


def _known_ports(ports: Ports) -> tuple[int, int]:
    # No connection uses port 0.
    known = ports is not None and all(isinstance(port, int) for port in ports) and ports != (1, LAST_PORT)
    return ports if ports is not None and known else EVERY_PORT


@dataclass(frozen=True, slots=True)
class Network:
    """The passages of a stack. `inside`: address blocks and names that belong to it. All others are outside.

    `unjudged`: why they are not known, such as for a subnet of another owner. `public`: where nodes have public
    addresses. `ways`: routes that lead out of its networks, in words. `nodes`: the `where` of the nodes that train.
    `addresses`: the peers that include all of them. Nodes reach the platform's services if they reach one peer of each
    row of `services`.
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
    """What is lost when a resource is deleted or replaced, and how to avoid that. Both are sentences."""

    words: str
    avoid: str = ""


@dataclass(frozen=True, slots=True)
class Machines:
    """The costs of one job's nodes. `usd_per_hour` and `accelerators` are for one node; None if not known.

    `stays`: machines are kept between runs. They stop after `idle_minutes` without a run (0: never). `retries`: how
    often the platform itself starts a node again at most, each time for the maximum runtime (negative: no limit).
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
    """The costs of each job, and standing costs."""

    jobs: Mapping[str, Machines] = field(default_factory=dict)
    standing: tuple[Standing, ...] = ()


class ReviewPlatform(Capability):
    """A platform's part of a review. The defaults, which platforms inherit, have no rules and no prices."""

    place = "review.platform.REVIEW"

    def network(self, side: Snapshot) -> Network:
        """What the rules of a snapshot allow. Evaluated from the resources, not from the plan."""
        return Network(unjudged="this platform has no network rules")

    def abilities(self, sides: Sequence[Snapshot]) -> tuple[frozenset[Ability], ...]:
        """The abilities of each side. Every principal, operation and resource that any side names is evaluated on all
        sides.

        One resource that no side names represents all others: `any other bucket`. A statement that cannot be read is an
        ability of UNREAD, so that it is reported.
        """
        return tuple(frozenset() for _ in sides)

    def statements(self, side: Snapshot) -> tuple[str, ...]:
        """The policy statements that a rehearsal counts, in the form of its report."""
        return ()

    def without_statements(self, side: Snapshot, texts: frozenset[str]) -> Snapshot:
        """The same snapshot without some statements."""
        return side

    def operation_words(self, operations: frozenset[str]) -> str:
        """These operations on one kind of resource in words: `read objects`."""
        return ", ".join(sorted(operations))

    def resource_words(self, resources: frozenset[str]) -> str:
        """Several resources on which a principal may do the same, in words: `bucket vision-dev`, `any bucket`."""
        return ", ".join(sorted(resources))

    def covers(self, resource: str, other: str) -> bool:
        """Whether `resource` includes `other`: `everything`, for example, includes a bucket."""
        return False

    def loss(self, resource: ReviewedResource) -> Loss | None:
        """What is lost when the resource is deleted. None if nothing important is, or if Pulumi retains it."""
        row = find_resource_type(resource.type)
        return loss_of(resource, row.lost) if row and row.lost and not resource.retain else None

    def replacing_inputs(self, before: ReviewedResource, after: ReviewedResource) -> tuple[str, ...]:
        """The paths of changed inputs that replace the resource. Empty if it is updated in place, or unchanged."""
        from components.platform.replacing import replacing_inputs

        return replacing_inputs(before, after)

    def costs(self, side: Snapshot, prices: Mapping[str, Any]) -> Costs:
        """`prices`: a team's own rows, which take precedence over those of the catalog."""
        return Costs()


_NAME = "{name}"


def loss_of(resource: ReviewedResource, lost: LostWith) -> Loss:
    names = (resource.inputs.get(key) for key in lost.named_by)
    name = f"`{next((name for name in names if isinstance(name, str) and name), resource.name)}`"
    # Not `format`: a name may have braces of its own.
    return Loss(lost.words.replace(_NAME, name), lost.avoid.replace(_NAME, name))


def unknown_value(what: str) -> str:
    return f"{UNKNOWN} {what}"


@dataclass(frozen=True, slots=True)
class OfflineStack:
    """The stack whose program is recorded: its name, and its configuration as values."""

    name: str
    config: Mapping[str, Any]

    def texts(self) -> frozenset[str]:
        """Every text of the file. Resources that they name are assumed to exist."""
        return frozenset(walk_texts(self.config))


class OfflineCloud(Capability):
    """Replaces a platform's cloud while a program is recorded. The defaults are for programs that look nothing up."""

    place = "offline.OFFLINE"

    def prepare(self) -> None:
        """Imports the modules of the platform's programs once, before the programs run."""

    def identify(self, token: str, name: str, inputs: Mapping[str, Any]) -> str:
        """The id of a new resource. It is readable, and the same each time."""
        return name

    def outputs(self, token: str, name: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The outputs that the cloud adds to a new resource's inputs, as far as components read them."""
        return {}

    def answer(self, function: str, arguments: Mapping[str, Any], stack: OfflineStack) -> Mapping[str, Any]:
        """The result of a lookup. Raises LookupError for a missing resource, or if it cannot be known."""
        raise LookupError(f"{function} cannot be called without a cloud")

    def borrowed(self) -> tuple[str, ...]:
        """The outputs of another stack that a stack may use."""
        return ()
