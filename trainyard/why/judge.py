# SPDX-License-Identifier: Apache-2.0
"""The verdict on a run: which cause the evidence shows, and how certain that is. Pure: no cloud, no files.

The kinds of evidence are asked in the order of their strength. A cause that one kind shows is certain only if that
kind comes from outside of the nodes, or if another kind agrees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from components.platform.causes import find_cause
from components.platform.status import RunStatus
from trainyard.why import network_judge, record_judge, stack_judge
from trainyard.why.facts import Facts, certainty_of
from trainyard.why.model import EvidenceKind, RunEvidence, Verdict
from trainyard.why.stack_groups import groups_text
from trainyard.why.symptoms import FoundSymptom, Symptom, known_symptoms

# Ends that a hang brings about: whoever hangs is the cause.
_ENDS_OF_HANGS = frozenset({"time limit", "cancelled"})
_ASKED_TO_END = "was asked to end"
_LOGS = "`trainyard runs logs` has what each rank printed"
_IDLE_LOOK = "whether it waits for work on purpose: then nothing is wrong. Nothing ends such a run for it"
_POLICY = "a policy must let "


def judge_run(seen: RunEvidence, symptoms: Sequence[Symptom]) -> Verdict:
    facts = Facts(seen, symptoms)
    judges: tuple[Callable[[Facts], Verdict | None], ...] = (
        judge_platform_words,
        network_judge.judge_findings,
        network_judge.judge_dropped,
        stack_judge.judge_stacks,
        judge_ends_of_hangs,
        record_judge.judge_records,
        record_judge.judge_output,
    )
    found = None if facts.run.state == "SUCCEEDED" else next(filter(None, (judge(facts) for judge in judges)), None)
    return replace(found or judge_without_cause(facts), evidence=facts.evidence())


def known_cause(run: RunStatus) -> str:
    """What statuses, dropped packets and the platform say about the cause, in one line: the line that every command
    shows about a run that failed. Empty if they say nothing."""
    verdict = judge_run(RunEvidence(run, {}, {}), known_symptoms())
    says_nothing = verdict.kind == "none" or (verdict.kind == "unknown" and find_cause(run) is None)
    return "" if says_nothing else verdict.cause


def judge_platform_words(facts: Facts) -> Verdict | None:
    """What the platform knows from outside of the nodes."""
    found = facts.platform_symptoms
    return _platform_verdict(
        facts, {rank: one for rank, one in found.items() if one.symptom.kind not in _ENDS_OF_HANGS}
    )


def judge_ends_of_hangs(facts: Facts) -> Verdict | None:
    found = facts.platform_symptoms
    ends = {rank: one for rank, one in found.items() if one.symptom.kind in _ENDS_OF_HANGS}
    words = {one.line for one in ends.values()}
    if ends and (facts.cause is None or any(line in facts.cause.reason for line in words)):
        return _platform_verdict(facts, ends)
    asked = facts.cause is None or _ASKED_TO_END in facts.cause.reason
    if facts.run.state == "CANCELED" and asked:
        remedy = "To start it again, write a higher `attempt` in the stack file"
        return Verdict("cancelled", "the run was ended by somebody, or by its stack", "certain", remedy=remedy)
    return None


def _platform_verdict(facts: Facts, found: Mapping[int, FoundSymptom]) -> Verdict | None:
    row = next((row for row in facts.symptoms if any(one.symptom is row for one in found.values())), None)
    if row is None:
        return None
    ranks = sorted(
        (rank for rank, one in found.items() if one.symptom is row),
        key=lambda rank: (facts.nodes[rank].run.finished_at or "", rank),
    )
    words = found[ranks[0]].line
    named = facts.cause is not None and facts.cause.rank in ranks
    if row.kind == "memory":
        ranks = [facts.cause.rank] if facts.cause is not None and facts.cause.rank in ranks else ranks[:1]
    cause = (
        words if len(ranks) == len(facts.nodes) and row.kind != "memory" else f"{facts.seen.name_of(ranks[0])}: {words}"
    )
    kinds: list[EvidenceKind] = ["launcher"] if named else []
    kinds.append(facts.platform_kind(found[ranks[0]]))
    return Verdict(
        row.kind,
        facts.cause.words if facts.cause is not None and named else cause,
        "likely" if row.doubtful else certainty_of(*kinds),
        tuple(sorted(ranks)),
        rule=f"let {words.partition(_POLICY)[2]}" if _POLICY in words else "",
        remedy=row.remedy,
        look=row.look,
    )


def judge_without_cause(facts: Facts) -> Verdict:
    """No cause is known."""
    where = groups_text(facts.groups)
    if facts.run.state == "SUCCEEDED":
        return Verdict("none", "the run succeeded", "certain")
    if facts.idle_everywhere and not facts.over:
        return Verdict("stall", "; ".join(filter(None, (facts.idle_everywhere, where))), "unknown", look=_IDLE_LOOK)
    if not facts.failed:
        waits = next((node.run.details for node in facts.run.nodes if node.run.details), "")
        return Verdict(
            "none",
            "; ".join(filter(None, ("nothing is known to be wrong", waits, where))),
            "unknown",
            look="`trainyard runs watch` for its progress; a minute later, this command again says whether ranks moved",
        )
    said = facts.cause.words if facts.cause is not None else ""
    details = next((node.run.details for node in facts.run.nodes if node.run.details), "")
    cause = said or details or "the run failed, and nothing says why"
    return Verdict("unknown", "; ".join(filter(None, (cause, where))), "unknown", look=_LOGS)
