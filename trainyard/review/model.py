# SPDX-License-Identifier: Apache-2.0
"""A review as values: one per stack, from which every form is rendered (schemas/review.schema.json)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from components.platform.review import Loss

ChangeKind = Literal["created", "changed", "replaced", "deleted", "kept", "blocked"]
StackKind = Literal["new", "removed", "changed", "same"]


@dataclass(frozen=True, slots=True)
class Change:
    """One resource that differs. `because`: the inputs that replace it. `follows`: what it is replaced with.

    `kept`: it leaves the stack, and stays in the cloud. `blocked`: it is protected, so that Pulumi refuses.
    """

    kind: ChangeKind
    type: str
    name: str
    urn: str
    because: tuple[str, ...] = ()
    follows: str = ""
    loss: Loss | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a destroy would meet: protected resources, which block it, and those that stay on purpose."""

    blocks: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Opening:
    """A passage in words, and whether anything outside of the stack can use it."""

    words: str
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """Who may do what, in words. `operations`: as the platform calls them."""

    principal: str
    words: str
    resource: str
    operations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hanging:
    """Two roles whose connection the rules do not let through."""

    job: str
    pair: tuple[str, str]
    ports: str
    missing: str


@dataclass(frozen=True, slots=True)
class JobCost:
    """What one job costs at most. `None`: unknown, which is not nothing.

    `hours`: a run's longest, retries included. `idle_hours`: machines that stay wait so long before they stop; None:
    they never stop. `starts`: the runs that this change starts.
    """

    job: str
    shape: str
    nodes: int
    runs: int
    starts: int
    hours: float | None
    node_hours: float | None
    gpu_hours: float | None
    usd_per_hour: float | None
    usd_per_run: float | None
    usd_starting: float | None
    stays: bool = False
    idle_hours: float | None = 0.0
    source: str = ""


@dataclass(frozen=True, slots=True)
class StandingCost:
    what: str
    usd_per_hour: float | None
    source: str = ""


@dataclass(frozen=True, slots=True)
class StackCosts:
    """`usd_starting`: the most that the runs which this change starts can cost; None: unknown, or without a bound."""

    jobs: tuple[JobCost, ...] = ()
    standing: tuple[StandingCost, ...] = ()
    usd_per_hour: float | None = 0.0
    usd_starting: float | None = 0.0
    starts: int = 0


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding of `check`, or a result of the policy pack. `outcome` of the pack: fail, unknown or waived.

    `waiver`: until when it is waived and why; of a failure, when that ended.
    """

    code: str
    level: str
    place: str
    message: str
    remedy: str = ""
    line: int = 0
    outcome: str = ""
    waiver: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A line of the picture. `how` says on what ports, or what is done."""

    source: str
    target: str
    how: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Roles in their subnet, and what they and people reach. `places`: bucket, registry, services, outside."""

    subnet: str = ""
    roles: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    edges: tuple[Edge, ...] = ()


@dataclass(frozen=True, slots=True)
class Review:
    """What a change of one stack means. `refused`: why `up` would not go on. `unjudged`: what is not known, and why.

    `findings` and `pack` are new with this change; `pack_before` counts what the policy pack said before it, too.

    `proven`, `unproven` and `unneeded`: of what opens and is granted, what a rehearsal needed, what it never had, and
    what it had and nobody would miss.

    `judged` is false where a side could not be read at all: then no gate may pass.
    """

    stack: str
    file: str
    platform: str
    kind: StackKind
    commit: str = ""
    against: str = ""
    on: str = ""
    refused: str = ""
    judged: bool = True
    opened: tuple[Opening, ...] = ()
    closed: tuple[Opening, ...] = ()
    hanging: tuple[Hanging, ...] = ()
    gained: tuple[Access, ...] = ()
    lost: tuple[Access, ...] = ()
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    forecast: Forecast = field(default_factory=Forecast)
    forecast_changed: bool = False
    costs: StackCosts = field(default_factory=StackCosts)
    costs_before: StackCosts = field(default_factory=StackCosts)
    proven: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()
    unneeded: tuple[str, ...] = ()
    findings: tuple[Remark, ...] = ()
    pack: tuple[Remark, ...] = ()
    pack_before: int = 0
    unjudged: tuple[str, ...] = ()
    picture: Picture = field(default_factory=Picture)

    def of_kind(self, *kinds: ChangeKind) -> tuple[Change, ...]:
        return tuple(one for one in self.changes if one.kind in kinds)

    @property
    def has_decisions(self) -> bool:
        """Whether a person must decide anything. What is made, or changed in place, takes no decision alone."""
        return bool(
            self.refused or self.opened or self.closed or self.hanging or self.gained or self.lost or self.warnings
            or self.of_kind("replaced", "deleted", "kept", "blocked") or self.costs.starts or self.findings
            or self.pack or self.costs != self.costs_before
        )  # fmt: skip
