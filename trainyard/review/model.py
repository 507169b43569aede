# SPDX-License-Identifier: Apache-2.0
"""The values of a review: a Review per stack, from which every format is rendered (schemas/review.schema.json)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from components.platform.review import Loss
from components.values.resource_types import find_resource_type

ChangeKind = Literal["created", "changed", "replaced", "deleted", "kept", "blocked"]
StackKind = Literal["new", "removed", "changed", "same"]
RunChangeKind = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class Change:
    """A resource that differs. `because`: the inputs that force its replacement, or that change in place. `follows`:
    the resource whose replacement replaces this one. `loss`: what is lost, also with a change in place, or by
    a new resource.

    Kinds: `kept` leaves the stack and stays in the cloud; `blocked` is protected, so Pulumi refuses the change.
    """

    kind: ChangeKind
    type: str
    name: str
    urn: str
    because: tuple[str, ...] = ()
    follows: str = ""
    loss: Loss | None = None


@dataclass(frozen=True, slots=True)
class InputChange:
    """An input whose value differs. Empty texts: there is none."""

    path: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class UnknownChange:
    """A change that no section judges. `is_known_type`: only these inputs are not judged; otherwise nothing is.

    `harmless`: why it can neither grant access nor open a way. Empty: it may.
    """

    kind: ChangeKind
    type: str
    name: str
    urn: str
    inputs: tuple[InputChange, ...] = ()
    harmless: str = ""
    is_known_type: bool = False


@dataclass(frozen=True, slots=True)
class Forecast:
    """What `pulumi destroy` would meet: protected resources, which block it, and resources that stay on purpose."""

    blocks: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Opening:
    """A passage in words, and whether something outside of the stack can use it."""

    words: str
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """A permission of a principal, in words. `operations`: the platform's names."""

    principal: str
    words: str
    resource: str
    operations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hanging:
    """A connection between two roles that no rule allows, so that the job would hang."""

    job: str
    pair: tuple[str, str]
    ports: str
    missing: str


@dataclass(frozen=True, slots=True)
class JobCost:
    """What one job costs at most. None means unknown, not zero.

    `hours`: the longest time of a run, with its retries. `idle_hours`: how long machines that stay between runs wait
    before they stop; None: they never stop. `starts`: the number of runs that this change starts.
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

    @property
    def never_stops(self) -> bool:
        return self.stays and self.idle_hours is None

    def differs_from(self, earlier: JobCost) -> bool:
        """Whether the job costs something else, however many of its runs are there or start."""
        here, there = (
            (job.shape, job.nodes, job.hours, job.usd_per_hour, job.stays, job.idle_hours) for job in (self, earlier)
        )
        return here != there


@dataclass(frozen=True, slots=True)
class StandingCost:
    what: str
    usd_per_hour: float | None
    source: str = ""


@dataclass(frozen=True, slots=True)
class StackCosts:
    """`usd_starting`: the most that the runs started by this change can cost. None: unknown, or unlimited.

    `usd_per_hour`: what costs money whether or not anything runs, machines that never stop included."""

    jobs: tuple[JobCost, ...] = ()
    standing: tuple[StandingCost, ...] = ()
    usd_per_hour: float | None = 0.0
    usd_starting: float | None = 0.0
    starts: int = 0

    @property
    def known_usd_per_hour(self) -> float:
        """The part of `usd_per_hour` whose prices are known."""
        of_machines = (job.usd_per_hour for job in self.jobs if job.never_stops)
        return sum(usd or 0.0 for usd in (*(cost.usd_per_hour for cost in self.standing), *of_machines))

    def jobs_that_differ(self, earlier: StackCosts) -> tuple[tuple[JobCost | None, JobCost], ...]:
        """The jobs that cost something else than in `earlier`, with what they cost there. None: they are new."""
        before = {job.job: job for job in earlier.jobs}
        pairs = ((before.get(job.job), job) for job in self.jobs)
        return tuple((was, job) for was, job in pairs if was is None or job.differs_from(was))

    def stands_otherwise(self, earlier: StackCosts) -> bool:
        """Whether something else costs money while nothing runs."""
        return frozenset(self.standing) != frozenset(earlier.standing) or (
            self.usd_per_hour,
            self.known_usd_per_hour,
        ) != (earlier.usd_per_hour, earlier.known_usd_per_hour)

    def differs_from(self, earlier: StackCosts) -> bool:
        """In any order of jobs, and of what stands."""
        removed = {job.job for job in earlier.jobs} - {job.job for job in self.jobs}
        return bool(removed or self.jobs_that_differ(earlier) or self.stands_otherwise(earlier))


@dataclass(frozen=True, slots=True)
class RunChange:
    """A part of what runs that differs, such as an image, a variable or a file of the code. No text has a secret.

    `job` empty: it concerns every job of the stack. `run` empty: every run of the job. `lets_in`: somebody can enter
    the nodes, receives a credential, or lends them rights. `minor`: it changes where and how long something runs, but
    not what.
    """

    job: str
    run: str
    kind: RunChangeKind
    what: str
    before: str = ""
    after: str = ""
    lets_in: bool = False
    minor: bool = False


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding of `check`, or a result of the policy pack. Only the pack has an `outcome`: fail, unknown or waived.

    `waiver`: the last day and the reason of a waiver in force, or when an earlier waiver ended.
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
    """An arrow of the picture. `how`: the ports, or the operations."""

    source: str
    target: str
    how: str


@dataclass(frozen=True, slots=True)
class Picture:
    """The roles in their subnet, and what they and people reach. `places`: bucket, registry, services, the internet."""

    subnet: str = ""
    roles: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    edges: tuple[Edge, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """A change of who acts, of who reviews, or of the code that runs, outside of the keys by which a stack is planned.

    `kind`: a word for programs. `files`: of the repository, the first ones.
    """

    kind: str
    words: str
    details: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RepositoryReview:
    """What a change means for every stack, as it lies beside them. `titles`: the kinds in words. `other_files`: how
    many files change that decide nothing here. `not_isolated`: why the program under review ran without a sandbox."""

    titles: tuple[str, ...] = ()
    changes: tuple[ProgramChange, ...] = ()
    other_files: int = 0
    not_isolated: str = ""


NO_REPOSITORY = RepositoryReview()


@dataclass(frozen=True, slots=True)
class Review:
    """What a change of one stack means. `refused`: why `up` would refuse it. `unjudged`: what is unknown, and why.

    `findings` and `pack` are new with this change. `pack_before` counts the pack's results that both sides have.

    `proven`, `unproven` and `unneeded`: what the change opens and grants, by a rehearsal: what it needed, what it did
    not have, and what it had but did not need.

    `judged` is false if a side could not be read. Then no gate may pass. `failed`: an error of the review itself.

    `program`: settings of the stack file that decide as whom `up` acts, and what the policy pack lets pass.
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
    failed: str = ""
    program: tuple[ProgramChange, ...] = ()
    unknown_changes: tuple[UnknownChange, ...] = ()
    opened: tuple[Opening, ...] = ()
    closed: tuple[Opening, ...] = ()
    hanging: tuple[Hanging, ...] = ()
    gained: tuple[Access, ...] = ()
    lost: tuple[Access, ...] = ()
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    what_runs: tuple[RunChange, ...] = ()
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
        return tuple(change for change in self.changes if change.kind in kinds)

    def that_end(self, *kinds: ChangeKind) -> tuple[Change, ...]:
        """The changes of these kinds, without deleted rules: what rules let through is compared as a whole."""
        return tuple(change for change in self.of_kind(*kinds) if change not in self.deleted_rules)

    @property
    def deleted_rules(self) -> tuple[Change, ...]:
        rows = ((change, find_resource_type(change.type)) for change in self.of_kind("deleted"))
        return tuple(change for change, row in rows if row and row.part == "security rule" and not change.loss)

    @property
    def lost_in_place(self) -> tuple[Change, ...]:
        return tuple(change for change in self.of_kind("changed", "created") if change.loss)

    @property
    def has_decisions(self) -> bool:
        """Whether a person must decide anything. What sections judge, and find without consequence, needs no
        decision: a resource that is made, or changed in place."""
        return bool(
            self.unknown_changes or self.program or self.failed or self.refused or self.opened or self.closed
            or self.hanging or self.gained or self.lost or self.warnings or self.costs.starts or self.findings
            or self.lost_in_place or self.that_end("replaced", "deleted", "kept", "blocked") or self.pack
            or self.what_runs or self.costs.differs_from(self.costs_before)
        )  # fmt: skip
