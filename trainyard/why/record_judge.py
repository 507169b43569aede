# SPDX-License-Identifier: Apache-2.0
"""Verdicts from the launchers' records, with what the named rank printed; and from output alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from components.platform.causes import Cause, reports_lost_peer
from components.platform.runs import UNSUCCESSFUL
from launcher.exits import FULL_SYMPTOM, MEMORY_SYMPTOM
from trainyard.why.facts import Facts, certainty_of
from trainyard.why.model import Certainty, EvidenceKind, Kind, Verdict
from trainyard.why.stack_groups import groups_text, rank_words
from trainyard.why.symptoms import FoundSymptom, find_symptom
from trainyard.why.tracebacks import RaisedException

_SIGNAL = re.compile(r"\b(SIG[A-Z0-9]{2,8}) \(code (\d{1,3})\)")
# Kinds whose texts may mean something else, too: a full disk and a full /dev/shm say the same.
_AMBIGUOUS = frozenset({"exception", "memory", "disk"})
_FULL_SHARED_MEMORY = f"/dev/shm {FULL_SYMPTOM}"
_CODE = re.compile(r"ended with code (\d{1,3})")
# Signals that a process gets for what it did itself.
_OWN_SIGNALS = frozenset({"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGSYS", "SIGTRAP"})
# Libraries abort where another rank broke off, so this signal alone proves nothing about the rank.
_OF_PEERS = frozenset({"SIGABRT"})
_WORDS: tuple[tuple[str, Kind, str, str], ...] = (
    (
        "sent no heartbeat",
        "machine",
        "Start the run again with a higher `attempt`",
        "what the platform says about that node",
    ),
    ("was lost", "machine", "Start the run again with a higher `attempt`", "what the platform says about that node"),
    ("object store", "store", "Wait until the store answers, or open the way to it", "whether the store answers"),
    (
        "may not use",
        "access",
        "`trainyard access STACK` prints the statements that runs need",
        "the statement that it names",
    ),
    (
        "check whether it started",
        "missing node",
        "Correct what keeps that node from starting, then raise `attempt`",
        "that node",
    ),
)
_PEER_LOOK = "where the other ranks were: `trainyard runs why` while it hangs asks every rank"
_STALL_LOOK = "what each rank printed last (`trainyard runs logs`), and `trainyard runs why` while it hangs"
_EARLY = "Let every rank take part until the last one has ended: batches of unequal number are the usual reason"
_KILLED = "Find out who ended it: the kernel for lack of memory, or somebody by hand"
_CRASHED = "Look for native code that does this: a library made for other versions, or for another processor"


def judge_records(facts: Facts) -> Verdict | None:
    """The rank whose failure the launchers saw first, if that is not one that another rank may have caused."""
    cause = facts.cause
    if cause is None:
        return judge_launcher_lines(facts)
    if facts.ended_early:
        return judge_early_end(facts, cause)
    if facts.stalled and facts.succeeded:
        words = f"{rank_words(facts.succeeded)} ended with 0 before the others; {cause.words}"
        where = groups_text(facts.groups)
        return Verdict("early end", "; ".join(filter(None, (words, where))), "likely", facts.succeeded, remedy=_EARLY,
                       look="what that rank printed last")  # fmt: skip
    if facts.stalled:
        return Verdict("stall", "; ".join(filter(None, (cause.words, groups_text(facts.groups)))), "unknown",
                       look=_STALL_LOOK)  # fmt: skip
    if facts.blames_a_peer:
        return judge_lost_peer(facts, cause)
    if MEMORY_SYMPTOM in cause.reason:
        return judge_memory(facts, cause)
    found = next((row for row in _WORDS if row[0] in cause.reason), None)
    if found is not None:
        _, kind, remedy, look = found
        ranks = (cause.rank,) if cause.rank is not None else ()
        outside = any(rank in facts.platform_symptoms for rank in ranks)
        kinds: list[EvidenceKind] = ["launcher", "platform"] if outside else ["launcher"]
        return Verdict(kind, cause.words, certainty_of(*kinds), ranks, remedy=remedy, look=look)
    return judge_own_failure(facts, cause)


def judge_memory(facts: Facts, cause: Cause) -> Verdict:
    """A launcher saw that the kernel ended processes of its node, where the platform has no word for it."""
    row = next(row for row in facts.symptoms if row.kind == "memory")
    kinds: list[EvidenceKind] = ["launcher"]
    if cause.rank is not None and _platform_agrees(facts, cause.rank, "SIGKILL", "137"):
        kinds.append("platform")
    ranks = (cause.rank,) if cause.rank is not None else ()
    return Verdict("memory", cause.words, certainty_of(*kinds), ranks, remedy=row.remedy, look=row.look)


def judge_early_end(facts: Facts, cause: Cause) -> Verdict:
    ranks = (cause.rank,) if cause.rank is not None else tuple(
        facts.succeeded
    )  # fmt: skip
    outside = all(facts.nodes[rank].run.state == "SUCCEEDED" for rank in ranks if rank in facts.nodes)
    broke = any(found.symptom.kind == "lost peer" for found in facts.output_symptoms.values())
    return Verdict(
        "early end",
        cause.words,
        "certain" if outside and broke and facts.seen.outside_words else "likely",
        ranks,
        remedy=_EARLY,
        look="what that rank printed last",
    )


def judge_lost_peer(facts: Facts, cause: Cause) -> Verdict:
    """A rank says that it lost another one. Another rank's own output may say why; otherwise nobody is named."""
    for rank, raised in sorted(facts.exceptions.items()):
        told = find_symptom([raised.words], facts.symptoms)
        if (
            rank != cause.rank
            and not raised.among_peers
            and raised.where is not None
            and not (told and told.symptom.peer)
        ):
            words = f"{facts.seen.name_of(rank)} raised {raised.words} ({raised.where.short}); {cause.words}"
            return Verdict("exception", words, "likely", (rank,), line=raised.where.short, look=_look_at(raised))
    found = facts.output_symptoms.get(cause.rank) if cause.rank is not None else None
    if found is not None and found.symptom.kind not in ("lost peer", "deadlock"):
        row = found.symptom
        if row.peer:
            return Verdict(row.kind, f"{cause.words}: it {row.meaning}: {found.line.strip()}", "likely",
                           remedy=row.remedy, look=row.look)  # fmt: skip
    return Verdict("lost peer", cause.words, "unknown", look=_PEER_LOOK)


def judge_own_failure(facts: Facts, cause: Cause) -> Verdict:
    """A rank failed by itself: by a signal, with an exception, or with a code."""
    rank = cause.rank
    if rank is None:
        return Verdict("unknown", cause.words, "unknown", look="what each rank printed last (`trainyard runs logs`)")
    found, raised = facts.output_symptoms.get(rank), facts.exceptions.get(rank)
    signal = _SIGNAL.search(cause.reason)
    if found is not None and (found.symptom.kind != "exception" or raised is None):
        return judge_symptom(facts, cause, found)
    if raised is not None:
        return judge_exception(facts, cause, raised)
    if signal is not None:
        own = signal[1] in _OWN_SIGNALS
        agrees = _platform_agrees(facts, rank, signal[1], signal[2]) and signal[1] not in _OF_PEERS
        return Verdict(
            "crash" if own else "killed", cause.words, "certain" if agrees else "likely", (rank,),
            remedy=_CRASHED if own else _KILLED, look="what that rank printed last, and who may end its processes",
        )  # fmt: skip
    return Verdict("exit" if _CODE.search(cause.reason) else "other", cause.words, "likely", (rank,),
                   look="what that rank printed last (`trainyard runs logs`)")  # fmt: skip


def judge_symptom(facts: Facts, cause: Cause, found: FoundSymptom) -> Verdict:
    row, rank = found.symptom, cause.rank
    # The launcher has looked what was full.
    seen_full = row.kind == "disk" and FULL_SYMPTOM in cause.reason
    if seen_full and _FULL_SHARED_MEMORY in cause.reason:
        row = next(other for other in facts.symptoms if other.kind == "shared memory")
    alike = sorted(other for other, one in facts.output_symptoms.items() if one.symptom is row)
    named = tuple(alike) if len(alike) == len(facts.nodes) and len(alike) > 1 else (rank,) if rank is not None else ()
    if len(named) > 1:
        words = f"{rank_words(named)} fail alike: each {row.meaning}: {found.line.strip()}"
    else:
        words = f"{cause.words}: it {_as_clause(row.meaning)}: {found.line.strip()}"
    doubtful = row.peer or row.doubtful or (row.kind in _AMBIGUOUS and not seen_full)
    certainty: Certainty = "likely" if doubtful else certainty_of("launcher", "output")
    return Verdict(row.kind, words, certainty, () if row.peer else named, line=_line_of(facts, rank), remedy=row.remedy,
                   look=row.look)  # fmt: skip


def _as_clause(meaning: str) -> str:
    """Meanings of our rows go on after the name of a rank. Those of platforms are sentences of their own."""
    return (
        f"failed, because {meaning}"
        if meaning.startswith(("the ", "data ", "MPI ", "TensorFlow ", "Tensor"))
        else meaning
    )


def judge_exception(facts: Facts, cause: Cause, raised: RaisedException) -> Verdict:
    alike = sorted(
        rank
        for rank, other in facts.exceptions.items()
        if (other.words.partition(":")[0], other.where) == (raised.words.partition(":")[0], raised.where)
    )
    several = len(alike) > 1 and len(alike) == len(facts.nodes)
    where = (
        f" ({raised.where.short}{f', in {raised.where.function}' if raised.where.function else ''})"
        if raised.where
        else ""
    )
    words = (
        f"{rank_words(alike)} fail alike: {raised.words}{where}" if several else f"{cause.words}: {raised.words}{where}"
    )
    own = not raised.among_peers and not reports_lost_peer(cause.reason)
    sure = raised.where is not None and own and (len(alike) == 1 or several)
    ranks = tuple(alike) if several else (cause.rank,) if cause.rank is not None else ()
    return Verdict(
        "exception", words, certainty_of("launcher", "output") if sure else "likely", ranks,
        line=raised.where.short if raised.where else "", look=_look_at(raised),
        remedy="Correct the script at this line; the next attempt resumes from its checkpoints",
    )  # fmt: skip


def _platform_agrees(facts: Facts, rank: int, signal: str, code: str) -> bool:
    """Whether the platform saw the same end of this rank."""
    node = facts.nodes.get(rank)
    if node is None or not facts.seen.outside_words:
        return False
    return re.search(rf"\bcode {re.escape(code)}\b|\b{re.escape(signal)}\b", node.run.details) is not None


def judge_launcher_lines(facts: Facts) -> Verdict | None:
    """Launchers that could write no status have only their lines."""
    found: Mapping[int, FoundSymptom] = facts.launcher_symptoms
    if not found:
        return None
    row = next(row for row in facts.symptoms if any(one.symptom is row for one in found.values()))
    if row.kind == "missing node" and not facts.failed:
        return None
    ranks = tuple(sorted(rank for rank, one in found.items() if one.symptom is row))
    line = found[ranks[0]].line.strip()
    agrees = bool(
        facts.failed and facts.seen.outside_words and any("code 78" in facts.nodes[rank].run.details for rank in ranks)
    )
    words = f"{rank_words(ranks)} {row.meaning}: {line}"
    kinds: list[EvidenceKind] = ["launcher", "platform"] if agrees else ["launcher"]
    certainty = "likely" if row.doubtful else certainty_of(*kinds)
    return Verdict(row.kind, words, certainty, ranks if len(ranks) < len(facts.nodes) else (),
                   rule=row.look if row.kind == "access" else "", remedy=row.remedy, look=row.look)  # fmt: skip


def judge_output(facts: Facts) -> Verdict | None:
    """Without any record of a launcher: the node that failed first, and what it printed. Its word is its own."""
    failed = [node for node in facts.run.nodes if node.run.state in UNSUCCESSFUL]
    if facts.cause is not None or not failed:
        return None
    alone = [node for node in failed if _failed_alone(facts, node.rank)]
    first = min(alone if len(alone) == 1 else failed, key=lambda node: (node.run.finished_at or "9999", node.rank))
    raised, found = facts.exceptions.get(first.rank), facts.output_symptoms.get(first.rank)
    name, line = facts.seen.name_of(first.rank), _line_of(facts, first.rank)
    if found is not None and not (found.symptom.kind == "exception" and raised is not None):
        row = found.symptom
        if row.peer:
            return Verdict(
                row.kind, f"{name} {row.meaning}: {found.line.strip()}", "unknown", look=_PEER_LOOK, line=line
            )
        return Verdict(row.kind, f"{name} {_as_clause(row.meaning)}: {found.line.strip()}", "likely", (first.rank,),
                       line=line, remedy=row.remedy, look=row.look)  # fmt: skip
    if raised is None:
        return None
    return Verdict(
        "exception", f"{name} failed: {raised.words}", "likely", (first.rank,), line=line, look=_look_at(raised)
    )


def _failed_alone(facts: Facts, rank: int) -> bool:
    """Whether a rank printed something that no other rank can have caused."""
    raised, found = facts.exceptions.get(rank), facts.output_symptoms.get(rank)
    return not found.symptom.peer if found is not None else raised is not None and not raised.among_peers


def _line_of(facts: Facts, rank: int | None) -> str:
    raised = facts.exceptions.get(rank) if rank is not None else None
    return raised.where.short if raised is not None and raised.where is not None else ""


def _look_at(raised: RaisedException) -> str:
    return (
        f"{raised.where.file}, line {raised.where.line}" if raised.where is not None else "what that rank printed last"
    )
