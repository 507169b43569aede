# SPDX-License-Identifier: Apache-2.0
"""Verdicts from the stacks of all ranks: the rank that is elsewhere while the others wait for it. Pure."""

from __future__ import annotations

from trainyard.why.facts import Facts, certainty_of
from trainyard.why.model import EvidenceKind, Verdict
from trainyard.why.stack_groups import CodePlace, StackGroup, find_odd_ranks, groups_text, rank_words

_SEQUENCE = (
    "Let every rank come to every collective operation, in the same order: look for a branch on the rank, and for"
    " batches of unequal number"
)


def judge_stacks(facts: Facts) -> Verdict | None:
    """A run that hung: it stalled, or the first failure is that of a rank that waited too long for another one.

    A living run in which no rank is idle may just be between two operations. Nobody is named there, unless all ranks
    are where they were a while ago.
    """
    hung = facts.blames_a_peer or facts.stalled or facts.stuck or (facts.failed and facts.cause is None)
    if not hung or not (facts.stacks or facts.output_symptoms):
        return None
    known = {stack.rank for stack in facts.stacks}
    waited = frozenset(facts.victims - known)
    odd = find_odd_ranks(facts.groups, waited, facts.idle)
    if odd is None:
        return judge_silent_rank(facts, known | waited) or judge_same_place(facts)
    where, kinds = odd.like.where, _agreeing(facts, odd)
    answers = not odd.like.halted and (where is not None or odd.like.waits is not None)
    words = groups_text([*[group for group in facts.groups if group is not odd], odd])
    if waited:
        words = f"{rank_words(sorted(waited))} waited too long for another rank; {words}"
    return Verdict(
        "deadlock" if answers else "no answer",
        words,
        certainty_of(*kinds) if answers else "likely",
        odd.ranks,
        line=where.short if where is not None else "",
        remedy=_SEQUENCE
        if answers
        else "Find out what stopped that process: a signal, a debugger, a device that hangs",
        look=f"{where.file}, line {where.line}" if where is not None else "that node",
    )


def _agreeing(facts: Facts, odd: StackGroup) -> list[EvidenceKind]:
    """The kinds that agree that these ranks are the ones that the others waited for."""
    kinds: list[EvidenceKind] = ["stack"]
    others = set(facts.nodes) - set(odd.ranks)
    waited = {rank for rank, found in facts.output_symptoms.items() if found.symptom.kind == "lost peer"}
    if waited & facts.victims & others and not waited & set(odd.ranks):
        kinds.append("output")
    return kinds


def judge_silent_rank(facts: Facts, known: set[int]) -> Verdict | None:
    """One living rank has no stack, and all others wait, or say that they have waited."""
    waited = {rank for rank, found in facts.output_symptoms.items() if found.symptom.kind == "lost peer"}
    told = waited if facts.cause is not None and facts.cause.rank in waited else set()
    silent = sorted(set(facts.nodes) - known - told - set(facts.succeeded))
    waiting = (facts.groups or told) and all(group.like.waits_for_peers for group in facts.groups)
    if len(silent) != 1 or not waiting or (facts.cause is not None and facts.cause.rank == silent[0]):
        return None
    if not facts.groups and not facts.statuses[silent[0]].get("stacks"):
        return None  # its launcher takes no stacks
    others = groups_text(facts.groups) or f"{rank_words(sorted(told))} waited too long for another rank"
    words = f"{others}; {facts.seen.name_of(silent[0])} gave no stack"
    remedy = "Find out what stopped its processes: a signal, a debugger, a device or a file system that hangs"
    return Verdict("no answer", words, "likely", (silent[0],), remedy=remedy, look="that node")


def judge_same_place(facts: Facts) -> Verdict | None:
    """All ranks are in the same place, so none of them is the cause."""
    if len(facts.groups) != 1 or len(facts.stacks) < len(facts.nodes):
        return None
    (group,) = facts.groups
    where: CodePlace | None = group.like.where
    if where is None:
        return None
    if group.like.waits_for_peers:
        look = "the network between the nodes, and their accelerators: all came to the same operation"
        return Verdict("stall", f"{group.words}, and none is elsewhere", "unknown", line=where.short, look=look)
    kinds: list[EvidenceKind] = ["stack", "launcher"] if facts.stalled else ["stack"]
    look = f"{where.file}, line {where.line}"
    return Verdict(
        "stall", group.words, certainty_of(*kinds), group.ranks, line=where.short,
        remedy="Find out what this line waits for", look=look,
    )  # fmt: skip
