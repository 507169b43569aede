# SPDX-License-Identifier: Apache-2.0
"""Starts the runs of a rehearsal, and watches each to its end.

Also repeats them: idle, to compare their traffic; and with a mutation, to confirm that it makes them fail.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import ProviderError, Tell, call_of
from components.platform.evidence import Mutation, RuleMutation, rule_mutations
from components.platform.inputs import with_defaults
from components.platform.rehearsal import People, Placeholders, RehearsalPlatform, StartedRun
from components.platform.runs import NodeRun, run_spec
from components.platform.status import RunStatus, WantedRuns, progress_text
from launcher.escaping import terminal_line
from localcloud.control import Cloud
from trainyard.rehearsal.judgement import Observations
from trainyard.rehearsal.model import RunSeen
from trainyard.rehearsal.mutations import MutationOutcome, rule_outcome, statement_outcome
from trainyard.rehearsal.node_load import NodeLoad, largest_load
from trainyard.rehearsal.run_evidence import Evidence

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
                filter(
                    None, (node.state, progress_text((node.launcher_status or {}).get("progress")), node.run.details)
                )
            )
            if self._known.get(node.rank) != now:
                self._known[node.rank] = now
                self._tell(terminal_line(f"  {run.title} rank {node.rank} {node.run.name}: {now}"))


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
        self, started: StartedRun, enough: Callable[[RunStatus | None], bool] = lambda run: False
    ) -> tuple[RunStatus | None, str]:
        """The run at its end, and why it was cancelled, or "". It is cancelled on timeout, or when `enough` says so,
        which is asked at every look. None if it was not started."""
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
            if not why and (late or started.refused or enough(run)):
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
    chosen = sample_mutations(seen, again[0], many, seed)
    return tuple(
        _confirm_mutation(replace_attempt(again[0], number + 2), mutation, outcome)
        for number, (mutation, outcome) in enumerate(chosen)
    )


def sample_mutations(
    seen: Observations, again: RepeatableRun, many: int, seed: int
) -> list[tuple[Mutation, MutationOutcome]]:
    """Deletions that are predicted to make this run fail: half of them of rules, half of statements, if there are
    enough. They are chosen at random, because each one takes a run.
    """
    own = {f"{again.job.name}/{again.run.name}", *(f"{again.job.name} {node.name}" for node in again.run.nodes)}
    rules, statements = rule_mutations(seen.traffic.rules), seen.access.mutations()
    by_rules = [(rule, rule_outcome(rule, seen.traffic, seen.planned)) for rule in rules]
    by_statements = [
        (statement, statement_outcome(statement, seen.calls, seen.access, seen.planned)) for statement in statements
    ]
    shuffled = random.Random(seed)
    piles: list[list[tuple[Mutation, MutationOutcome]]] = []
    for predictions in (by_rules, by_statements):
        failing = [
            (mutation, outcome)
            for mutation, outcome in predictions
            if mutation.kind == "deleted" and outcome.fate == "fails" and any(name in outcome.because for name in own)
        ]
        piles.append(shuffled.sample(failing, len(failing)))
    chosen: list[tuple[Mutation, MutationOutcome]] = []
    while len(chosen) < many and any(piles):
        for pile in piles:
            if pile and len(chosen) < many:
                chosen.append(pile.pop())
    return chosen


def _confirm_mutation(again: RepeatableRun, mutation: Mutation, predicted: MutationOutcome) -> MutationOutcome:
    again.tell(f"rehearse: confirming by a run: {mutation.title}")
    evidence = Evidence(again.platform, again.cloud, again.who, again.outputs, again.tell)
    since = evidence.last_call()
    with again.platform.without(again.cloud, mutation):
        started = again.start()
        evidence.begin(started)

        def noticed() -> bool:
            if not isinstance(mutation, RuleMutation):
                return evidence.refused_since(since)
            first, last = mutation.before.ports or (0, 65535)
            return any(first <= int(row["port"]) <= last for row in evidence.dropped_now(started))

        seen, why = again.watch_to_end(started, lambda run: noticed())
        failed = bool(started.refused) or seen is None or seen.state != "SUCCEEDED"
        shown = noticed()
    if not shown and not failed:
        because = f"predicted: {predicted.because}; but the run succeeded"
        return replace(predicted, fate="survives", because=because, explained=False)
    how = "seen as predicted" if shown else f"the run failed: {started.refused or why or (seen.state if seen else '')}"
    return replace(predicted, because=f"{how}: {predicted.because}")


def compare_with_idle(
    runs: Sequence[RunSeen], finished: Sequence[RepeatableRun], evidence: Evidence
) -> tuple[tuple[RunSeen, ...], tuple[str, ...]]:
    """The runs, with the idle loads of their service nodes, and remarks on runs that could not be compared.

    An idle run has the same nodes and services, and a command that only waits. So its traffic is the cost of joining
    and of heartbeats (trainyard/rehearsal/node_load.py).
    """
    repeatable = {(run.job.name, run.run.name): run for run in finished}
    judged_runs: list[RunSeen] = []
    missing: list[str] = []
    for run in runs:
        again = repeatable.get((run.job, run.run))
        if again is None or not any(rank.duty == "serves" and rank.load and rank.load.bytes for rank in run.ranks):
            judged_runs.append(run)
            continue
        # How long the command ran, on the node where it ran longest.
        durations = ((rank.launcher_status or {}).get("ranSeconds") for rank in run.ranks if rank.duty != "serves")
        seconds = max(_SHORTEST_SECONDS, *(float(value) for value in durations if isinstance(value, int | float)), 0.0)
        idle = _idle_loads(again, seconds, evidence)
        if not idle:
            what = "whether its service nodes did more than join: the idle run to compare with failed"
            missing.append(f"job {run.job}: {what}")
        by_role: dict[str, list[NodeLoad]] = defaultdict(list)
        for rank in run.ranks:
            by_role[rank.node.role] += [idle[rank.node.rank]] if rank.node.rank in idle else []
        # Which of several equal nodes has more is chance.
        ranks = (replace(rank, idle=largest_load(by_role[rank.node.role])) for rank in run.ranks)
        judged_runs.append(replace(run, ranks=tuple(ranks)))
    return tuple(judged_runs), tuple(missing)


def _idle_loads(again: RepeatableRun, seconds: float, evidence: Evidence) -> dict[int, NodeLoad]:
    """Starts the idle run, and returns its loads by rank. Empty if it failed."""
    waits = min(seconds, LONGEST_SECONDS)
    name = f"{again.job.name}/{again.run.name}"
    again.tell(f"rehearse: running {name} with a command that only waits {waits:.1f} s, to compare")
    idle = replace_attempt(again, _IDLE_ATTEMPT)
    # Every node's command (and its wrapper) is replaced.
    command = ["{python}", "-c", f"import time; time.sleep({waits:.3f})"]
    nodes = tuple(
        replace(node, launch={**node.launch, "command": command, "wrap": []}) if node.launch["command"] else node
        for node in idle.run.nodes
    )
    idle = replace(idle, run=replace(idle.run, nodes=nodes))
    started = idle.start()
    seen, why = idle.watch_to_end(started)
    if started.refused or why or seen is None or seen.state != "SUCCEEDED":
        return {}
    return {rank: load.scaled(seconds / waits) for rank, load in evidence.loads(again.job.name, seen).items()}
