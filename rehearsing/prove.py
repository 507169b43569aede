# SPDX-License-Identifier: Apache-2.0
"""Predictions of a proof, put to the test: the mutation is made for real, the job runs again, and what was predicted
must be seen. A sample, by a seed: each takes a run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from localcloud import admin
from rehearsal.judgement import Observations
from rehearsal.mutations import RuleMutation, rule_mutations, statement_mutations
from rehearsal.proof import MutationOutcome, rule_outcome, statement_outcome
from rehearsing.again import Again, replace_attempt
from rehearsing.evidence import Evidence
from rehearsing.platform import Mutation
from rehearsing.runs import Started


def confirmed(again: Sequence[Again], seen: Observations, many: int, seed: int) -> tuple[MutationOutcome, ...]:
    """The outcomes that a run of their own showed as well, and those that it did not show."""
    if not again:
        return ()
    chosen = sample(seen, again[0], many, seed)
    return tuple(
        _confirm(replace_attempt(again[0], number + 2), mutation, outcome)
        for number, (mutation, outcome) in enumerate(chosen)
    )


def sample(seen: Observations, again: Again, many: int, seed: int) -> list[tuple[Mutation, MutationOutcome]]:
    """Deletions that are predicted to make this very run fail, half of each kind while there are."""
    own = f"{again.job.name}/{again.run.name}"
    by_rules = [(one, rule_outcome(one, seen.traffic, seen.planned)) for one in rule_mutations(seen.traffic.rules)]
    by_statements = [
        (one, statement_outcome(one, seen.calls, seen.grounds, seen.planned))
        for one in statement_mutations(seen.grounds.policies)
    ]
    random_ = random.Random(seed)
    piles: list[list[tuple[Mutation, MutationOutcome]]] = []
    for pile in (by_rules, by_statements):
        wanted = [
            (one, out) for one, out in pile if one.kind == "deleted" and out.fate == "fails" and own in out.because
        ]
        piles.append(random_.sample(wanted, len(wanted)))
    chosen: list[tuple[Mutation, MutationOutcome]] = []
    while len(chosen) < many and any(piles):
        for pile_ in piles:
            if pile_ and len(chosen) < many:
                chosen.append(pile_.pop())
    return chosen


def _confirm(again: Again, mutation: Mutation, predicted: MutationOutcome) -> MutationOutcome:
    again.tell(f"rehearse: confirming by a run: {mutation.title}")
    evidence = Evidence(again.platform, again.cloud, again.who, again.outputs, again.tell)
    since = evidence.last_call()
    with again.platform.without(again.cloud, mutation):
        started = again.start()
        noticed = _noticed(again, mutation, started, evidence, since)
        seen, why = again.watched(started, noticed)
        failed = bool(started.refused) or seen is None or seen.state != "SUCCEEDED"
        shown = noticed()
    if not shown and not failed:
        all_the_same = f"predicted: {predicted.because}; but the run succeeded"
        return replace(predicted, fate="survives", because=all_the_same, explained=False)
    how = "seen as predicted" if shown else f"the run failed: {started.refused or why or (seen.state if seen else '')}"
    return replace(predicted, because=f"{how}: {predicted.because}")


def _noticed(again: Again, mutation: Mutation, started: Started, evidence: Evidence, since: int) -> Callable[[], bool]:
    """Whether what was predicted has happened: packets of the rule's kind are dropped, or a call is refused."""
    ids = {node.id for node in started.nodes}

    def dropped() -> bool:
        if not isinstance(mutation, RuleMutation):
            return False
        ports = mutation.before.ports or (0, 65535)
        rows = evidence.dropped_now(ids)
        return any(ports[0] <= int(row["port"]) <= ports[1] for row in rows)

    def refused() -> bool:
        return any(not row["allowed"] for row in admin.list_calls(again.cloud, since))

    return dropped if isinstance(mutation, RuleMutation) else refused
