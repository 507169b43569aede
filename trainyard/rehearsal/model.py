# SPDX-License-Identifier: Apache-2.0
"""The values of a rehearsal: what was seen of runs and ranks, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from components.platform.rehearsal import Artifact
from components.platform.traffic import DroppedResult, RehearsedNode
from components.values.security_rules import Ports
from trainyard.rehearsal.mutations import MutationOutcome, Proof
from trainyard.rehearsal.node_load import Duty, NodeLoad

RehearsalVerdict = Literal["passed", "failed", "not rehearsed"]
# The report's word for firewalls in force. Otherwise it has the reason why they were not.
ENFORCED = "enforced"
# The exit codes of `trainyard rehearse`. CI can tell a failure from a stack that could not be rehearsed.
EXIT_CODES: Mapping[str, int] = {"passed": 0, "failed": 1, "not rehearsed": 3}


@dataclass(frozen=True, slots=True)
class RankSeen:
    """One rank at its end: the platform's state, and the last status file of its launcher.

    `load` is its load, and `idle` the load of its role in an idle run.
    """

    node: RehearsedNode
    state: str
    details: str
    launcher_status: Mapping[str, Any] | None
    duty: Duty = "free"
    load: NodeLoad | None = None
    idle: NodeLoad | None = None


@dataclass(frozen=True, slots=True)
class RunSeen:
    """One run of one job. `reason` says why it was not rehearsed, `failed` why it did not start. `local_only` names the
    files that a real cloud would lose."""

    job: str
    run: str
    framework: str
    code: str = ""
    environment: str = ""
    ranks: tuple[RankSeen, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    reason: str = ""
    failed: str = ""
    last_lines: tuple[str, ...] = ()
    local_only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RankResult:
    rank: int
    name: str
    role: str
    address: str
    state: str
    joined: bool
    finished: bool
    first_step_seconds: float | None
    note: str
    carried: bool | None = None
    load: NodeLoad | None = None
    idle: NodeLoad | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    job: str
    run: str
    framework: str
    verdict: RehearsalVerdict
    because: tuple[str, ...]
    code: str
    environment: str
    ranks: tuple[RankResult, ...]
    first_step_seconds: float | None
    artifacts: tuple[Artifact, ...]
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleResult:
    rule: str
    description: str
    connections: int
    pairs: tuple[str, ...]
    direction: str = ""
    protocol: str = ""
    peer: str = ""
    ports: Ports = None


@dataclass(frozen=True, slots=True)
class FlowResult:
    """Connections of one kind that rules allowed, in a form for programs: a review uses them as proof."""

    pair: str
    direction: str
    protocol: str
    port: int
    peer: str
    to_node: bool
    connections: int


@dataclass(frozen=True, slots=True)
class StatementResult:
    """A statement of a policy. `calls` counts the calls that it allowed. `inferred` are permissions that were used, but
    that no document names: the catalog assumes them."""

    policy: str
    statement: str
    why: str
    calls: int
    operations: tuple[str, ...]
    inferred: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefusedResult:
    who: str
    operation: str
    missing: tuple[str, ...]
    times: int


@dataclass(frozen=True, slots=True)
class FaultOutcome:
    """What a fault did to a run. `struck`: whether anything of the run noticed it. `said`: what a user reads about the
    failure. `again`: how the next start ended, if the run needed one, and `resumed` whether that went on from a later
    step, `from_step`; None if nothing reports steps.
    `loss`: the last value of a metric at the end, and `undisturbed_loss`: that of the run without the fault."""

    run: str
    fault: str
    struck: bool
    state: str
    said: str
    seconds: float
    again: str = ""
    resumed: bool | None = None
    from_step: float | None = None
    loss: str = ""
    undisturbed_loss: str = ""


@dataclass(frozen=True, slots=True)
class ConnectionResult:
    """A planned connection between two nodes. `open`: None if it could not be tested."""

    source: str
    target: str
    label: str
    ports: str
    open: bool | None


@dataclass(frozen=True, slots=True)
class PreflightResult:
    """What the preflight of a run says. `untested`: why nothing was tested; empty if it was."""

    run: str
    connections: tuple[ConnectionResult, ...]
    findings: tuple[str, ...]
    untested: str = ""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The whole report."""

    stack: str
    verdict: RehearsalVerdict
    seconds: float
    runs: tuple[RunResult, ...]
    firewall: str
    rules: tuple[RuleResult, ...]
    flows: tuple[FlowResult, ...]
    dropped: tuple[DroppedResult, ...]
    statements: tuple[StatementResult, ...]
    refused: tuple[RefusedResult, ...]
    not_proven: tuple[str, ...]
    proof: Proof | None = None
    confirmed: tuple[MutationOutcome, ...] = field(default=())
    faults: tuple[FaultOutcome, ...] = field(default=())
    preflight: tuple[PreflightResult, ...] = field(default=())
    faults_left_out: tuple[str, ...] = field(default=())

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]
