# SPDX-License-Identifier: Apache-2.0
"""When the run as a whole is complete: the policy of the job, worked out alike by every node from the same endings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from launcher.document import Launch


@dataclass(frozen=True)
class Final:
    """A node that will not start again. `code` None: it was lost."""

    rank: int
    succeeded: bool
    code: int | None


@dataclass(frozen=True)
class Verdict:
    """How the run ended, and whose ending decided it."""

    succeeded: bool
    rank: int
    code: int | None


def verdict(launch: Launch, finals: Iterable[Final]) -> Verdict | None:
    """None while the run goes on. `finals` in the order in which they happened: the first to decide decides."""
    succeeded: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    open_ranks = {rank for role in launch.roles if not role.service for rank in launch.ranks_of(role.name)}
    for final in finals:
        role = launch.role_of(final.rank)
        (succeeded if final.succeeded else failed)[role.name] += 1
        open_ranks.discard(final.rank)
        enough = role.min_succeeded is not None and role.min_succeeded >= 0
        if final.succeeded and enough and succeeded[role.name] >= (role.min_succeeded or 0):
            return Verdict(True, final.rank, 0)
        if final.succeeded and final.rank == 0 and launch.elastic:
            return Verdict(True, 0, 0)
        if not final.succeeded and not launch.spares(final.rank, sum(failed.values())):
            if launch.elastic or (role.min_failed >= 0 and (launch.gang or failed[role.name] >= role.min_failed)):
                return Verdict(False, final.rank, final.code)
            if launch.gang:
                return Verdict(True, final.rank, final.code)
        if not open_ranks:
            return Verdict(True, final.rank, final.code)
    return None
