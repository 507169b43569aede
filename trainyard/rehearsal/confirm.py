# SPDX-License-Identifier: Apache-2.0
"""Confirms a sample of predicted outcomes by real runs: makes the mutation in the cloud, runs the job again, and looks
for the predicted failure. Each takes a run, so only a few are chosen, at random with a given seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from components.platform.evidence import Mutation, RuleMutation, rule_mutations
from components.platform.rehearsal import StartedRun
from trainyard.rehearsal.evidence import Evidence
from trainyard.rehearsal.judgement import Observations
from trainyard.rehearsal.proof import MutationOutcome, rule_outcome, statement_outcome
from trainyard.rehearsal.runs import RepeatableRun, replace_attempt


def confirm_predictions(
    again: Sequence[RepeatableRun], seen: Observations, many: int, seed: int
) -> tuple[MutationOutcome, ...]:
    """The outcomes of the sampled mutations, each from a run of its own."""
    if not again:
        return ()
    chosen = sample(seen, again[0], many, seed)
    return tuple(
        _confirm(replace_attempt(again[0], number + 2), mutation, outcome)
        for number, (mutation, outcome) in enumerate(chosen)
    )


def sample(seen: Observations, again: RepeatableRun, many: int, seed: int) -> list[tuple[Mutation, MutationOutcome]]:
    """Deletions that are predicted to make this run fail: half of them of rules, half of statements, if there are
    enough."""
    own = {f"{again.job.name}/{again.run.name}", *(f"{again.job.name} {node.name}" for node in again.run.nodes)}
    by_rules = [(one, rule_outcome(one, seen.traffic, seen.planned)) for one in rule_mutations(seen.traffic.rules)]
    by_statements = [
        (one, statement_outcome(one, seen.calls, seen.grounds, seen.planned)) for one in seen.grounds.mutations()
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
        noticed = _noticed(again, mutation, started, evidence, since)
        seen, why = again.watch_to_end(started, noticed)
        failed = bool(started.refused) or seen is None or seen.state != "SUCCEEDED"
        shown = noticed()
    if not shown and not failed:
        all_the_same = f"predicted: {predicted.because}; but the run succeeded"
        return replace(predicted, fate="survives", because=all_the_same, explained=False)
    how = "seen as predicted" if shown else f"the run failed: {started.refused or why or (seen.state if seen else '')}"
    return replace(predicted, because=f"{how}: {predicted.because}")


def _noticed(
    again: RepeatableRun, mutation: Mutation, started: StartedRun, evidence: Evidence, since: int
) -> Callable[[], bool]:
    """Returns a function: whether the prediction has come true, by dropped packets of the rule or a refused call."""

    def dropped() -> bool:
        if not isinstance(mutation, RuleMutation):
            return False
        ports = mutation.before.ports or (0, 65535)
        rows = evidence.dropped_now(started)
        return any(ports[0] <= int(row["port"]) <= ports[1] for row in rows)

    def refused() -> bool:
        return evidence.refused_since(since)

    return dropped if isinstance(mutation, RuleMutation) else refused
