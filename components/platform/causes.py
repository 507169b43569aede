# SPDX-License-Identifier: Apache-2.0
"""Why a run failed, from the status of its launchers: the rank that failed first, or a cause that all ranks share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from components.platform.status import NodeStatus, RunStatus

_FAILED, _ENDED = "failed", frozenset({"failed", "stopped"})
# A launcher's reason begins with this if a signal ended it.
_ASKED_TO_END = "was asked to end"


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a failed run. `rank` is None if no rank failed before the others."""

    rank: int | None
    node: str
    reason: str

    @property
    def words(self) -> str:
        if self.rank is None or self.reason.startswith(f"rank {self.rank} "):
            return self.reason
        return f"rank {self.rank} ({self.node}) failed first" + (f": {self.reason}" if self.reason else "")


def reason_of(node: NodeStatus) -> str:
    """The launcher's reason. If a signal ended it, the platform's: only that knows about the maximum runtime."""
    reason = _status_value(node, "reason")
    return node.run.details or reason if reason.startswith(_ASKED_TO_END) else reason


def find_cause(run: RunStatus) -> Cause | None:
    """The cause, or None while no launcher has reported a failure."""
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
    # If every node has the same reason, such as a stall, no single rank is the cause.
    return Cause(None, "", reason) if len(alike) > 1 and len(alike) == len(run.nodes) else _first(first, reason)


def _first(node: NodeStatus, reason: str) -> Cause:
    return Cause(node.rank, node.run.name, reason)


def _culprits(nodes: Iterable[NodeStatus]) -> Iterator[int]:
    """The ranks that launchers name as the reason why they ended."""
    for node in nodes:
        rank = (node.launcher_status or {}).get("culprit")
        if rank is not None and _status_value(node, "state") in _ENDED:
            yield rank


def _of(run: RunStatus, rank: int) -> str:
    """The reason that other launchers give for a rank whose own launcher reported none, mostly because it was lost."""
    blaming = (node for node in run.nodes if (node.launcher_status or {}).get("culprit") == rank)
    return next((_status_value(node, "reason").removeprefix("stopped: ") for node in blaming), "")


def _status_value(node: NodeStatus, key: str) -> str:
    return str((node.launcher_status or {}).get(key) or "")
