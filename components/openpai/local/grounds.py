# SPDX-License-Identifier: Apache-2.0
"""OpenPAI has no policies and no rules between tasks, so a proof has nothing to take away. That is said, not shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from components.platform.access import LostCall, RecordedCall
from components.platform.mutations import PolicyInForce, StatementMutation
from components.platform.planned import PlannedNeeds

# What a real cluster may refuse, and a local one cannot know.
NOT_PROVEN = (
    "access: OpenPAI has no policies to take away; whether a cluster gives this user its virtual cluster and storage, "
    "only that cluster says",
    "ports: OpenPAI has no rules between tasks to take away; they reach one another on every port of their machines",
)


@dataclass(frozen=True, slots=True)
class NoGrounds:
    """`components.platform.access.Grounds`."""

    policies: tuple[PolicyInForce, ...] = ()

    def refused(self, calls: Sequence[RecordedCall], policies: Iterable[PolicyInForce]) -> tuple[LostCall, ...]:
        return ()

    def mutations(self) -> Iterator[StatementMutation]:
        return iter(())

    def inferred(self, call: RecordedCall) -> tuple[str, ...]:
        return ()


def planned_needs() -> PlannedNeeds:
    return PlannedNeeds(least=False, rules=(), statements=())
