# SPDX-License-Identifier: Apache-2.0
"""Predictions of a proof, put to the test: the mutation is made for real, the job runs again, and what was predicted
must be seen. A sample, by a seed: each takes a run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from components.plan.model import JobPlan, Plan, RunPlan
from localcloud import admin
from localcloud.control import Cloud
from localstacks.oci.sessions import DEPLOYER, session_of
from provider.base.asking import Tell
from rehearsal.judgement import Seen
from rehearsal.mutations import RuleMutation, StatementMutation, of_rules, of_statements
from rehearsal.proof import Outcome, rule_outcome, statement_outcome
from rehearsing.evidence import Evidence
from rehearsing.people import People
from rehearsing.runs import Answers, Started, start, watched

Mutation = RuleMutation | StatementMutation


@dataclass(frozen=True)
class Again:
    """The run that is started again, and where."""

    cloud: Cloud
    who: People
    plan: Plan
    job: JobPlan
    run: RunPlan
    outputs: Any
    answers: Answers
    minutes: float
    tell: Tell


def confirmed(again: Sequence[Again], seen: Seen, many: int, seed: int) -> tuple[Outcome, ...]:
    """The outcomes that a run of their own showed as well, and those that it did not show."""
    if not again:
        return ()
    chosen = sample(seen, again[0], many, seed)
    return tuple(
        _confirm(replace_attempt(again[0], number + 2), mutation, outcome)
        for number, (mutation, outcome) in enumerate(chosen)
    )


def sample(seen: Seen, again: Again, many: int, seed: int) -> list[tuple[Mutation, Outcome]]:
    """Deletions that are predicted to make this very run fail, half of each kind while there are."""
    own = f"{again.job.name}/{again.run.name}"
    by_rules = [(one, rule_outcome(one, seen.traffic, seen.planned)) for one in of_rules(seen.traffic.rules)]
    by_statements = [
        (one, statement_outcome(one, seen.calls, seen.grounds, seen.planned))
        for one in of_statements(seen.grounds.policies)
    ]
    random_ = random.Random(seed)
    piles: list[list[tuple[Mutation, Outcome]]] = []
    for pile in (by_rules, by_statements):
        wanted = [
            (one, out) for one, out in pile if one.kind == "deleted" and out.fate == "fails" and own in out.because
        ]
        piles.append(random_.sample(wanted, len(wanted)))
    chosen: list[tuple[Mutation, Outcome]] = []
    while len(chosen) < many and any(piles):
        for pile_ in piles:
            if pile_ and len(chosen) < many:
                chosen.append(pile_.pop())
    return chosen


def replace_attempt(again: Again, attempt: int) -> Again:
    """The same run once more: its folder in the bucket is another, as for any higher attempt."""
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


def _confirm(again: Again, mutation: Mutation, predicted: Outcome) -> Outcome:
    again.tell(f"rehearse: confirming by a run: {mutation.title}")
    change = _without_rule if isinstance(mutation, RuleMutation) else _without_statement
    evidence = Evidence(again.cloud, again.who, str(again.outputs["bucket"]), again.tell)
    since = evidence.last_call()
    with change(again.cloud, mutation):  # type: ignore[arg-type]  # each takes its own kind
        started = start(again.who, again.plan, again.job, again.run, again.outputs, again.answers, again.tell)
        noticed = _noticed(again, mutation, started, evidence, since)
        seen, why = (
            watched(again.who, again.plan, started, again.minutes, again.tell, noticed) if started.nodes else (None, "")
        )
        failed = bool(started.refused) or seen is None or seen.state != "SUCCEEDED"
        shown = noticed()
    if not shown and not failed:
        all_the_same = f"predicted: {predicted.because}; the run succeeded all the same"
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


@contextmanager
def _without_rule(cloud: Cloud, mutation: RuleMutation) -> Iterator[None]:
    network, models = session_of(cloud, DEPLOYER).client("core"), import_module("oci.core.models")
    rule = mutation.before
    field = f"{rule.direction}_security_rules"
    whole = getattr(network.get_security_list(rule.list).data, field)
    rest = [one for index, one in enumerate(whole) if index != rule.index]
    network.update_security_list(rule.list, models.UpdateSecurityListDetails(**{field: rest}))
    try:
        yield
    finally:
        network.update_security_list(rule.list, models.UpdateSecurityListDetails(**{field: whole}))


@contextmanager
def _without_statement(cloud: Cloud, mutation: StatementMutation) -> Iterator[None]:
    from rehearsal.calls import canonical

    identity, models = session_of(cloud, DEPLOYER).client("identity"), import_module("oci.identity.models")
    places = (cloud.tenancy, cloud.compartment)
    (policy,) = (one for place in places for one in identity.list_policies(place, name=mutation.policy).data)
    rest = [text for text in policy.statements if canonical(text) != mutation.before]
    # A policy is never empty: this one grants what nobody here asks for.
    kept = rest or ["Allow group Administrators to inspect tag-namespaces in tenancy"]
    identity.update_policy(policy.id, models.UpdatePolicyDetails(statements=kept))
    try:
        yield
    finally:
        identity.update_policy(policy.id, models.UpdatePolicyDetails(statements=policy.statements))
