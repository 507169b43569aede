# SPDX-License-Identifier: Apache-2.0
"""The cause of a failed run: what the platform knows from outside of the nodes, then what their launchers report.

The first rank that reports a failure is not always its cause: it may have lost a rank that had ended or died before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from components.platform.status import NodeStatus, RunStatus
from launcher.exits import ALSO_FAILED, MEMORY_SYMPTOM, PEER_SYMPTOM

_FAILED, _STOPPED, _SUCCEEDED = "failed", "stopped", "succeeded"
_ENDED = frozenset({_FAILED, _STOPPED})
# A launcher's reason begins with this if a signal ended it.
_ASKED_TO_END = "was asked to end"
# A platform's words about a process that the kernel ended. Its launcher only sees the signal.
_OUT_OF_MEMORY = re.compile(r"[^:;]*(?:used all its memory|used more memory than|[Oo]ut of memory|OOM)[^;]*")
_KILLED = "SIGKILL"
# The ranks that a sentence names; the others are counted.
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a failed run. `rank` is None if no single rank is the cause."""

    rank: int | None
    node: str
    reason: str

    @property
    def words(self) -> str:
        if self.rank is None or self.reason.startswith(f"rank {self.rank} "):
            return self.reason
        return f"rank {self.rank} ({self.node}) failed first" + (f": {self.reason}" if self.reason else "")


def reason_of(node: NodeStatus) -> str:
    """The launcher's reason, after what the platform knows better: who used all memory. If a signal ended the launcher:
    the platform's reason, because only the platform knows the maximum runtime."""
    reason = _status_value(node, "reason")
    if reason.startswith(_ASKED_TO_END):
        return node.run.details or reason
    told = _told_out_of_memory(node)
    return "; ".join(filter(None, (told, reason.replace(f": {MEMORY_SYMPTOM}", "") if told else reason)))


def reports_lost_peer(reason: str) -> bool:
    """Whether a launcher's reason says that another rank may be the cause."""
    return PEER_SYMPTOM in reason


def find_cause(run: RunStatus) -> Cause | None:
    """The cause, or None while no launcher has reported a failure."""
    reported = _first_reported(run)
    if reported is None:
        return None
    killed = [node for node in run.nodes if _killed_for_memory(node)]
    if killed and reported.rank not in {node.rank for node in killed}:
        first = min(killed, key=lambda node: (node.run.finished_at or "", node.rank))
        return Cause(first.rank, first.run.name, f"{_title(first)} is the cause: {_killed_for_memory(first)}")
    if reported.rank is None or reported.reason.startswith(f"rank {reported.rank} "):
        return reported
    others = [node for node in run.nodes if node.rank != reported.rank]
    own_failures = [node for node in others if ALSO_FAILED in _status_value(node, "reason")]
    is_victim = reports_lost_peer(reported.reason)
    killed = [node for node in own_failures if _KILLED in _status_value(node, "reason").partition(ALSO_FAILED)[2]]
    if len(killed) == 1 and _KILLED not in reported.reason:
        own_failures = killed  # no failure of another rank kills a process
    if len(own_failures) == 1 and (is_victim or killed == own_failures):
        # It failed by itself, although another rank was quicker to report a failure.
        (node,) = own_failures
        how = _status_value(node, "reason").partition(f"{ALSO_FAILED} ")[2]
        said = "had lost a connection" if is_victim else reported.reason
        other = f"rank {reported.rank} ({reported.node}) reported first that it {said}"
        return Cause(node.rank, node.run.name, f"{_title(node)} failed: ended with {how}; {other}")
    early = [node for node in others if _status_value(node, "state") == _SUCCEEDED]
    if is_victim and early and not own_failures:
        return _cause_of_early_end(early, reported)
    if is_victim or own_failures:
        title = f"rank {reported.rank} ({reported.node})"
        return replace(reported, reason=f"{title} was the first to report a failure: {reported.reason}")
    return reported


def _first_reported(run: RunStatus) -> Cause | None:
    """The rank whose failure ended the others, as the launchers saw it."""
    # The ranks that launchers name as the reason why they ended.
    culprits = Counter(
        (node.launcher_status or {})["culprit"]
        for node in run.nodes
        if (node.launcher_status or {}).get("culprit") is not None and _status_value(node, "state") in _ENDED
    )
    if culprits:
        rank = min(culprits, key=lambda rank: (-culprits[rank], rank))
        culprit = next((node for node in run.nodes if node.rank == rank), None)
        if culprit and _status_value(culprit, "state") == _FAILED:
            return Cause(rank, culprit.run.name, reason_of(culprit))
        # Its own launcher reported no failure, mostly because it was lost, so the others' words count, and what the
        # platform knows.
        blaming = (node for node in run.nodes if (node.launcher_status or {}).get("culprit") == rank)
        reason = next((_status_value(node, "reason").removeprefix("stopped: ") for node in blaming), "")
        details = culprit.run.details if culprit and culprit.run.state == "FAILED" else ""
        return Cause(rank, culprit.run.name if culprit else "?", ": ".join(filter(None, (reason, details))))
    failed = [node for node in run.nodes if _status_value(node, "state") == _FAILED]
    if not failed:
        return None
    first = min(failed, key=lambda node: (_status_value(node, "at"), node.run.finished_at or "", node.rank))
    reason = reason_of(first)
    alike = [node for node in run.nodes if reason_of(node) == reason]
    # If every node has the same reason, such as a stall, no single rank is the cause.
    if len(alike) > 1 and len(alike) == len(run.nodes):
        return Cause(None, "", reason)
    return Cause(first.rank, first.run.name, reason)


def _cause_of_early_end(early: Sequence[NodeStatus], reported: Cause) -> Cause:
    """Ranks that ended with success while another one still wanted to exchange data with them."""
    first = min(early, key=lambda node: (_status_value(node, "at"), node.rank))
    named = ", ".join(f"{node.rank} ({node.run.name})" for node in early[:_MOST_NAMED])
    more = f" and {len(early) - _MOST_NAMED} more" if len(early) > _MOST_NAMED else ""
    victim = f"rank {reported.rank} ({reported.node}) then {reported.reason}"
    if len(early) > 1:
        return Cause(None, "", f"ranks {named}{more} ended with 0 before the others: {victim}")
    return Cause(first.rank, first.run.name, f"rank {named} ended with 0 before the others: {victim}")


def _killed_for_memory(node: NodeStatus) -> str:
    """The words about a node that used all its memory: the platform's, or else its launcher's."""
    return _told_out_of_memory(node) or (MEMORY_SYMPTOM if MEMORY_SYMPTOM in _status_value(node, "reason") else "")


def _told_out_of_memory(node: NodeStatus) -> str:
    """The platform's words about a failed node that used all its memory; empty if it says nothing like that."""
    found = _OUT_OF_MEMORY.search(node.run.details) if node.run.state == _FAILED.upper() else None
    return found[0].strip() if found else ""


def _title(node: NodeStatus) -> str:
    return f"rank {node.rank} ({node.run.name})"


def _status_value(node: NodeStatus, key: str) -> str:
    return str((node.launcher_status or {}).get(key) or "")
