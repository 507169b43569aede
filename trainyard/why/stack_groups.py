# SPDX-License-Identifier: Apache-2.0
"""Where the ranks of a run are, by the stacks that their launchers took, and which rank is elsewhere. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

# Functions in which a rank waits for all the others, or for one of them, as the innermost frame of a stack.
_WAITS_FOR_PEERS = re.compile(
    "_?(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|barrier|monitored_barrier|synchronize|gather|"
    "scatter|reduce|irecv|isend|recv|send|grouped_allreduce|init_process_group|_?new_process_group_helper|rendezvous|"
    "_?rendezvous_handler|_engine_run_backward|broadcast_object_list|all_gather_object|gather_object|hvd_init|"
    "quick_execute|store_based_barrier)(?:_?(?:coalesced|base|single|tensor|into_tensor|async|list|object|v|_))*"
)
_MOST_NAMED, _MOST_GROUPS = 8, 4


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A place in code. `file`: as the team knows it."""

    function: str
    file: str
    line: int

    @property
    def short(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}"


@dataclass(frozen=True, slots=True)
class RankStack:
    """Where a rank is. `where` None: in no code of the team, or its process answered nothing. `seconds`: how
    long it has been there, as far as stacks were taken. `halted`: a signal or a debugger stopped one of its
    processes."""

    rank: int
    where: CodePlace | None
    waits: CodePlace | None
    seconds: float = 0.0
    halted: bool = False

    @property
    def operation(self) -> str:
        """The operation in which it waits for other ranks: a library's, or a function of the team that is called like
        one. Empty if it is in none."""
        functions = [place.function for place in (self.waits, self.where) if place is not None]
        return next((name for name in functions if _WAITS_FOR_PEERS.fullmatch(name)), "")

    @property
    def waits_for_peers(self) -> bool:
        return self.operation != "" and not self.halted

    @property
    def words(self) -> str:
        """What the rank does: the same words for ranks that do the same."""
        if self.halted:
            return "stopped, by a signal or a debugger"
        if self.where is None:
            return f"in {self.waits.function}" if self.waits is not None else ""
        return f"in {self.operation or self.where.function} ({self.where.short})"


@dataclass(frozen=True, slots=True)
class StackGroup:
    """Ranks that are in the same place."""

    ranks: tuple[int, ...]
    like: RankStack

    @property
    def words(self) -> str:
        several = len(self.ranks) > 1
        if not self.like.words:
            return f"{rank_words(self.ranks)} {'do' if several else 'does'} not say where"
        verb = ("wait" if several else "waits") if self.like.waits_for_peers else ("are" if several else "is")
        return f"{rank_words(self.ranks)} {verb} {self.like.words}"


def read_stack(rank: int, status: Mapping[str, Any], request: str = "") -> RankStack | None:
    """The newest stack in a rank's status, or that of a request. None if there is none: a status is untrusted, and
    older launchers have no stacks."""
    listed = status.get("stacks")
    rows = [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []
    while request and rows and rows[-1].get("request") != request:
        rows.pop()
    if not rows:
        return None
    where, waits = (_read_place(rows[-1].get(key)) for key in ("where", "waits"))
    halted = rows[-1].get("halted") is True
    if where is None and waits is None and not halted and rows[-1].get("cause") == "failure":
        return None  # its processes were ending, too
    moments = [_moment_of(rows[-1])]
    for row in reversed(rows[:-1]):
        if (_read_place(row.get("where")), _read_place(row.get("waits"))) != (where, waits):
            break
        moments.append(_moment_of(row))
    known = [moment for moment in moments if moment is not None]
    return RankStack(rank, where, waits, max(known) - min(known) if known else 0.0, halted)


def _moment_of(row: Mapping[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(str(row.get("at"))).timestamp()
    except (ValueError, OverflowError):
        return None


def _read_place(value: Any) -> CodePlace | None:
    if not isinstance(value, Mapping):
        return None
    function, file, line = value.get("function"), value.get("file"), value.get("line")
    if not isinstance(function, str) or not isinstance(file, str) or not isinstance(line, int):
        return None
    return CodePlace(function, file, line)


def group_stacks(stacks: Iterable[RankStack]) -> list[StackGroup]:
    """The ranks by place, the largest group first."""
    together: dict[tuple[bool, str], list[RankStack]] = {}
    for stack in sorted(stacks, key=lambda stack: stack.rank):
        together.setdefault((stack.waits_for_peers, stack.words), []).append(stack)
    groups = [StackGroup(tuple(stack.rank for stack in same), same[0]) for same in together.values()]
    return sorted(groups, key=lambda group: (-len(group.ranks), group.ranks))


def groups_text(groups: Sequence[StackGroup]) -> str:
    """`ranks 0, 2 wait in all_reduce (train.py:41); rank 1 is in evaluate (train.py:11)`."""
    more = len(groups) - _MOST_GROUPS
    return "; ".join([*(group.words for group in groups[:_MOST_GROUPS]), *([f"and {more} more"] if more > 0 else [])])


def find_odd_ranks(
    groups: Sequence[StackGroup], waiting: frozenset[int] = frozenset(), idle: frozenset[int] = frozenset()
) -> StackGroup | None:
    """The ranks that are elsewhere while the others wait for them. `waiting`: ranks without a stack that are known to
    have waited. `idle`: ranks that do nothing while others do something, so they wait, wherever they are. None if it
    cannot be told: no rank waits, none is elsewhere, or more than one group is.

    Where all ranks but one are in the same place, that place need not be a known operation.
    """
    halted = [group for group in groups if group.like.halted]
    if halted:
        return halted[0] if len(groups) > 1 or waiting else None
    if len(groups) == 2 and len(groups[1].ranks) == 1 and len(groups[0].ranks) > 1:
        doubtful = groups[1].like.waits_for_peers and not groups[0].like.waits_for_peers
        return None if doubtful else groups[1]
    for_peers = [group for group in groups if group.like.waits_for_peers or idle.issuperset(group.ranks)]
    elsewhere = [group for group in groups if group not in for_peers]
    wait = sum(len(group.ranks) for group in for_peers) + len(waiting)
    if len(elsewhere) == 1 and wait:
        return elsewhere[0] if len(elsewhere[0].ranks) <= wait else None
    return None


def rank_words(ranks: Sequence[int]) -> str:
    """`rank 1`, `ranks 0, 2`, and the number of the others if there are many."""
    shown = ", ".join(map(str, ranks[:_MOST_NAMED]))
    more = f" and {len(ranks) - _MOST_NAMED} more" if len(ranks) > _MOST_NAMED else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"
