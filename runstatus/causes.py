# SPDX-License-Identifier: Apache-2.0
"""Why a run failed, as its launchers know it: which rank failed first, or what ended all of them alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from runstatus.seen import NodeSeen, RunSeen

_FAILED, _ENDED = "failed", frozenset({"failed", "stopped"})


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


def cause(run: RunSeen) -> Cause | None:
    """None while no launcher has said that anything failed."""
    culprits = Counter(_culprits(run.nodes))
    if culprits:
        rank = min(culprits, key=lambda rank: (-culprits[rank], rank))
        node = next((one for one in run.nodes if one.rank == rank), None)
        own = node is not None and _said(node, "state") == _FAILED
        return Cause(rank, node.run.name if node else "?", _said(node, "reason") if own and node else _of(run, rank))
    failed = [node for node in run.nodes if _said(node, "state") == _FAILED]
    if not failed:
        return None
    first = min(failed, key=lambda node: (_said(node, "at"), node.run.finished_at or "", node.rank))
    reason = _said(first, "reason")
    alike = [node for node in run.nodes if _said(node, "reason") == reason]
    # What ends every node alike, a stall for one, is nobody's fault before the others'.
    return Cause(None, "", reason) if len(alike) > 1 and len(alike) == len(run.nodes) else _first(first, reason)


def _first(node: NodeSeen, reason: str) -> Cause:
    return Cause(node.rank, node.run.name, reason)


def _culprits(nodes: Iterable[NodeSeen]) -> Iterator[int]:
    """Whom the launchers that were stopped name."""
    for node in nodes:
        rank = (node.told or {}).get("culprit")
        if rank is not None and _said(node, "state") in _ENDED:
            yield rank


def _of(run: RunSeen, rank: int) -> str:
    """What the others say of a rank whose launcher said nothing of its end: it was lost, mostly."""
    told = (node for node in run.nodes if (node.told or {}).get("culprit") == rank)
    return next((_said(node, "reason").removeprefix("stopped: ") for node in told), "")


def _said(node: NodeSeen, key: str) -> str:
    return str((node.told or {}).get(key) or "")
