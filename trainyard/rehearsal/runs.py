# SPDX-License-Identifier: Apache-2.0
"""Starts the runs of a rehearsal, and watches each to its end.

Also repeats them: idle, to compare their traffic; and with a mutation, to confirm that it makes them fail.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import ProviderError, Tell, call_of
from components.platform.evidence import Mutation, RuleMutation, rule_mutations
from components.platform.inputs import with_defaults
from components.platform.rehearsal import People, Placeholders, RehearsalPlatform, StartedRun
from components.platform.runs import NodeRun, run_spec
from components.platform.status import RunStatus, WantedRuns, progress
from launcher.escaping import terminal
from localcloud.control import Cloud
from trainyard.rehearsal.evidence import Evidence
from trainyard.rehearsal.judgement import Observations
from trainyard.rehearsal.model import RunSeen
from trainyard.rehearsal.mutations import MutationOutcome, rule_outcome, statement_outcome
from trainyard.rehearsal.node_load import NodeLoad, largest_load

_SECONDS_BETWEEN_LOOKS = 0.5
# How long to wait after a cancel. A machine that cannot reach the bucket, for lack of a rule or statement, never sees
# the cancel.
_SECONDS_TO_END = 30.0
# How long an idle run waits at most. That includes a node's periodic work. For a longer run, its load is multiplied.
LONGEST_SECONDS = 60.0
_SHORTEST_SECONDS = 0.5
# The attempt of an idle run: no other run of a rehearsal has so high a number.
_IDLE_ATTEMPT = 9000


class RunProgress:
    """Prints one line of progress for each change of a rank."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._known: dict[int, str] = {}

    def tell(self, run: RunStatus) -> None:
        for node in run.nodes:
            now = ": ".join(
                filter(None, (node.state, progress((node.launcher_status or {}).get("progress")), node.run.details))
            )
            if self._known.get(node.rank) != now:
                self._known[node.rank] = now
                self._tell(terminal(f"  {run.title} rank {node.rank} {node.run.name}: {now}"))


@dataclass(frozen=True)
class RepeatableRun:
    """A run that can be started any number of times, with everything that a start needs."""

    platform: RehearsalPlatform
    cloud: Cloud
    who: People
    plan: Plan
    job: JobPlan
    run: RunPlan
    outputs: Mapping[str, Any]
    answers: Placeholders
    minutes: float
    tell: Tell

    def start(self) -> StartedRun:
        """Starts the run with the inputs that `up` would give it. It does not wait for access to take effect: on the
        local cloud, access is in force at once."""
        inputs = self.platform.inputs(self.who, self.plan, self.job, self.run, self.outputs, self.answers, self.tell)
        spec = run_spec(f"rehearsal of {self.plan.stack}: {self.job.name}/{self.run.name}", with_defaults(inputs))
        spec = replace(spec, timeouts=replace(spec.timeouts, access=0.0))
        made: list[NodeRun] = []
        try:
            made.extend(self.who.runs.ensure(call_of("rehearse", self.tell), spec, ()))
        except ProviderError as refused:
            return StartedRun(self.job, self.run, tuple(made), f"{self.who.words} could not start it: {refused.cause}")
        return StartedRun(self.job, self.run, tuple(made))

    def watch_to_end(
        self, started: StartedRun, enough: Callable[[], bool] = lambda: False
    ) -> tuple[RunStatus | None, str]:
        """The run at its end, and why it was cancelled, or "". It is cancelled on timeout, or when `enough()` is true.
        None if it was not started."""
        if not started.nodes:
            return None, ""
        runs, call = self.who.runs, call_of("rehearse", self.tell)
        reader = runs.reader(WantedRuns(self.plan.stack, self.job.name, self.run.name))
        deadline, shown, why = time.monotonic() + self.minutes * 60, RunProgress(self.tell), ""
        while True:
            run = next(iter(reader.look(call)), None)
            if run is not None:
                shown.tell(run)
            late = time.monotonic() > deadline
            if run is None or run.over or (why and late):
                return run, why
            if not why and (late or started.refused or enough()):
                ended = f"it had not ended after {self.minutes:g} minutes and was cancelled"
                why = ended if late else "it was cancelled"
                runs.cancel(call, started.nodes)
                deadline = time.monotonic() + _SECONDS_TO_END
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def replace_attempt(again: RepeatableRun, attempt: int) -> RepeatableRun:
    """The same run with another attempt number, and so with another folder in the bucket."""
    before = f"/{again.run.attempt}"
    nodes = tuple(
        replace(
            node,
            launch={
                **node.launch,
                "attempt": attempt,
                "folder": str(node.launch.get("folder") or "").removesuffix(before) + f"/{attempt}",
            },
        )
        for node in again.run.nodes
    )
    return replace(again, run=replace(again.run, attempt=attempt, nodes=nodes))


def confirm_predictions(
    again: Sequence[RepeatableRun], seen: Observations, many: int, seed: int
) -> tuple[MutationOutcome, ...]:
    """Makes `many` predicted mutations in the cloud, one at a time, and runs the job again. Returns the outcomes."""
    if not again:
        return ()
    chosen = sample(seen, again[0], many, seed)
    return tuple(
        _confirm(replace_attempt(again[0], number + 2), mutation, outcome)
        for number, (mutation, outcome) in enumerate(chosen)
    )


def sample(seen: Observations, again: RepeatableRun, many: int, seed: int) -> list[tuple[Mutation, MutationOutcome]]:
    """Deletions that are predicted to make this run fail: half of them of rules, half of statements, if there are
    enough. They are chosen at random, because each one takes a run.
    """
    own = {f"{again.job.name}/{again.run.name}", *(f"{again.job.name} {node.name}" for node in again.run.nodes)}
    by_rules = [(one, rule_outcome(one, seen.traffic, seen.planned)) for one in rule_mutations(seen.traffic.rules)]
    by_statements = [
        (one, statement_outcome(one, seen.calls, seen.access, seen.planned)) for one in seen.access.mutations()
    ]
    random_ = random.Random(seed)
    piles: list[list[tuple[Mutation, MutationOutcome]]] = []
    for pile in (by_rules, by_statements):
        wanted = [
            (one, out)
            for one, out in pile
            if one.kind == "deleted" and out.fate == "fails" and any(one in out.because for one in own)
        ]
        piles.append(random_.sample(wanted, len(wanted)))
    chosen: list[tuple[Mutation, MutationOutcome]] = []
    while len(chosen) < many and any(piles):
        for pile_ in piles:
            if pile_ and len(chosen) < many:
                chosen.append(pile_.pop())
    return chosen


def _confirm(again: RepeatableRun, mutation: Mutation, predicted: MutationOutcome) -> MutationOutcome:
    again.tell(f"rehearse: confirming by a run: {mutation.title}")
    evidence = Evidence(again.platform, again.cloud, again.who, again.outputs, again.tell)
    since = evidence.last_call()
    with again.platform.without(again.cloud, mutation):
        started = again.start()
        evidence.begin(started)
        noticed = _prediction_check(again, mutation, started, evidence, since)
        seen, why = again.watch_to_end(started, noticed)
        failed = bool(started.refused) or seen is None or seen.state != "SUCCEEDED"
        shown = noticed()
    if not shown and not failed:
        because = f"predicted: {predicted.because}; but the run succeeded"
        return replace(predicted, fate="survives", because=because, explained=False)
    how = "seen as predicted" if shown else f"the run failed: {started.refused or why or (seen.state if seen else '')}"
    return replace(predicted, because=f"{how}: {predicted.because}")


def _prediction_check(
    again: RepeatableRun, mutation: Mutation, started: StartedRun, evidence: Evidence, since: int
) -> Callable[[], bool]:
    """Returns a function that tells whether the prediction is confirmed by dropped packets or by a refused call."""

    def dropped() -> bool:
        if not isinstance(mutation, RuleMutation):
            return False
        ports = mutation.before.ports or (0, 65535)
        rows = evidence.dropped_now(started)
        return any(ports[0] <= int(row["port"]) <= ports[1] for row in rows)

    def refused() -> bool:
        return evidence.refused_since(since)

    return dropped if isinstance(mutation, RuleMutation) else refused


def compare_with_idle(
    runs: Sequence[RunSeen], finished: Sequence[RepeatableRun], evidence: Evidence
) -> tuple[tuple[RunSeen, ...], tuple[str, ...]]:
    """The runs, with the idle loads of their service nodes, and remarks on runs that could not be compared.

    An idle run has the same nodes and services, and a command that only waits. So its traffic is the cost of joining
    and of heartbeats (trainyard/rehearsal/node_load.py).
    """
    again = {(one.job.name, one.run.name): one for one in finished}
    judged_runs: list[RunSeen] = []
    missing: list[str] = []
    for run in runs:
        one = again.get((run.job, run.run))
        if one is None or not any(rank.duty == "serves" and rank.load and rank.load.bytes for rank in run.ranks):
            judged_runs.append(run)
            continue
        idle = _idle_loads(one, _seconds(run), evidence)
        if not idle:
            what = "whether its service nodes did more than join: the idle run to compare with failed"
            missing.append(f"job {run.job}: {what}")
        ranks = (replace(rank, idle=_of_role(run, idle, rank.node.role)) for rank in run.ranks)
        judged_runs.append(replace(run, ranks=tuple(ranks)))
    return tuple(judged_runs), tuple(missing)


def _of_role(run: RunSeen, idle: Mapping[int, NodeLoad], role: str) -> NodeLoad | None:
    """The largest load of the role's idle nodes: which of several equal nodes has more is chance."""
    return largest_load(idle[rank.node.rank] for rank in run.ranks if rank.node.role == role and rank.node.rank in idle)


def _seconds(run: RunSeen) -> float:
    """How long the command ran, on the node where it ran longest."""
    durations = ((rank.launcher_status or {}).get("ranSeconds") for rank in run.ranks if rank.duty != "serves")
    return max(_SHORTEST_SECONDS, *(float(one) for one in durations if isinstance(one, int | float)), 0.0)


def _idle_loads(again: RepeatableRun, seconds: float, evidence: Evidence) -> dict[int, NodeLoad]:
    """Starts the idle run, and returns its loads by rank. Empty if it failed."""
    waits = min(seconds, LONGEST_SECONDS)
    name = f"{again.job.name}/{again.run.name}"
    again.tell(f"rehearse: running {name} with a command that only waits {waits:.1f} s, to compare")
    idle = _idle_run(replace_attempt(again, _IDLE_ATTEMPT), waits)
    started = idle.start()
    seen, why = idle.watch_to_end(started)
    if started.refused or why or seen is None or seen.state != "SUCCEEDED":
        return {}
    return {rank: load.scaled(seconds / waits) for rank, load in evidence.loads(again.job.name, seen).items()}


def _idle_run(again: RepeatableRun, seconds: float) -> RepeatableRun:
    """The same run, but every node's command (and its wrapper) is replaced with one that only waits."""
    command = ["{python}", "-c", f"import time; time.sleep({seconds:.3f})"]
    nodes = tuple(
        replace(node, launch={**node.launch, "command": command, "wrap": []}) if node.launch["command"] else node
        for node in again.run.nodes
    )
    return replace(again, run=replace(again.run, nodes=nodes))
