# SPDX-License-Identifier: Apache-2.0
"""The calls that were made, how the policies decided them, and who can say how others would have decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from components.platform.mutations import PolicyInForce, StatementMutation


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One kind of call: who called what, how often, and which statements (`by`) allowed it.

    `principal` and `target` are the platform's own: only its `Grounds` read them.
    """

    operation: str
    principal: Any
    who: str
    permissions: tuple[str, ...]
    target: Any
    times: int
    allowed: bool
    by: tuple[tuple[str, str, str], ...]
    missing: tuple[str, ...]
    at: datetime

    def rests_on(self, policy: str, statement: str) -> bool:
        return any((name, text) == (policy, statement) for _, name, text in self.by)


@dataclass(frozen=True, slots=True)
class LostCall:
    """A call that would have been refused, and the permissions it would have lacked."""

    call: RecordedCall
    missing: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.call.who} lacks {', '.join(self.missing)} for {self.call.operation}"


class Grounds(Protocol):
    """What decides about access besides the call itself. Each platform has policies of its own language."""

    @property
    def policies(self) -> tuple[PolicyInForce, ...]: ...

    def refused(self, calls: Sequence[RecordedCall], policies: Iterable[PolicyInForce]) -> tuple[LostCall, ...]:
        """The calls that were allowed, but that these policies would refuse."""

    def mutations(self) -> Iterator[StatementMutation]:
        """Changes of one statement each."""

    def inferred(self, call: RecordedCall) -> tuple[str, ...]:
        """The permissions of a call that no document names."""
