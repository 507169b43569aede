# SPDX-License-Identifier: Apache-2.0
"""Why a run failed, as its launchers know it: which rank failed first, or what ended all of them alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from components.platform.status import NodeStatus, RunStatus

_FAILED, _ENDED = "failed", frozenset({"failed", "stopped"})
# As launchers begin the reason where a signal from outside ended them.
_ASKED_TO_END = "was asked to end"


@dataclass(frozen=True, slots=True)
class Cause:
    """`rank` None: no rank failed before the others."""

    rank: int | None
    node: str
    reason: str

    @property
    def words(self) -> str:
        if self.rank is None or self.reason.startswith(f"rank {self.rank} "):
            return self.reason
        return f"rank {self.rank} ({self.node}) failed first" + (f": {self.reason}" if self.reason else "")


def reason_of(node: NodeStatus) -> str:
    """The launcher's reason. Who ended it by a signal knows more: the platform, which keeps the maximum runtime."""
    reason = _status_value(node, "reason")
    return node.run.details or reason if reason.startswith(_ASKED_TO_END) else reason


def find_cause(run: RunStatus) -> Cause | None:
    """None while no launcher has said that anything failed."""
    culprits = Counter(_culprits(run.nodes))
    if culprits:
        rank = min(culprits, key=lambda rank: (-culprits[rank], rank))
        node = next((one for one in run.nodes if one.rank == rank), None)
        own = node is not None and _status_value(node, "state") == _FAILED
        return Cause(rank, node.run.name if node else "?", reason_of(node) if own and node else _of(run, rank))
    failed = [node for node in run.nodes if _status_value(node, "state") == _FAILED]
    if not failed:
        return None
    first = min(failed, key=lambda node: (_status_value(node, "at"), node.run.finished_at or "", node.rank))
    reason = reason_of(first)
    alike = [node for node in run.nodes if reason_of(node) == reason]
    # What ends every node alike, a stall for one, is nobody's fault before the others'.
    return Cause(None, "", reason) if len(alike) > 1 and len(alike) == len(run.nodes) else _first(first, reason)


def _first(node: NodeStatus, reason: str) -> Cause:
    return Cause(node.rank, node.run.name, reason)


def _culprits(nodes: Iterable[NodeStatus]) -> Iterator[int]:
    """Whom the launchers that were stopped name."""
    for node in nodes:
        rank = (node.launcher_status or {}).get("culprit")
        if rank is not None and _status_value(node, "state") in _ENDED:
            yield rank


def _of(run: RunStatus, rank: int) -> str:
    """What the others say of a rank whose launcher said nothing of its end: it was lost, mostly."""
    blaming = (node for node in run.nodes if (node.launcher_status or {}).get("culprit") == rank)
    return next((_status_value(node, "reason").removeprefix("stopped: ") for node in blaming), "")


def _status_value(node: NodeStatus, key: str) -> str:
    return str((node.launcher_status or {}).get(key) or "")
