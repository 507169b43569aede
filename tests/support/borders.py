# SPDX-License-Identifier: Apache-2.0
"""Sends generated requests to a cloud as a user with few permissions. They are malformed wherever two parsers of a
request (a "seam") could understand it differently.

The check reads the cloud's store: everything that the sender has no right to change is the same before and after. What
the access check decided, and the response, are not considered.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Protocol


class Border(Protocol):
    """One cloud that gets generated requests. `draw` makes a request from a seed, `send` returns the status of the
    response."""

    def draw(self, random: Random) -> Any: ...

    def send(self, request: Any) -> int: ...

    def outside(self) -> Mapping[str, Any]:
        """Everything that this sender may neither change nor read, by name."""


class CrossedError(AssertionError):
    """A request changed something that its sender had no right to change."""

    def __init__(self, seed: int, request: Any, what: str) -> None:
        super().__init__(f"seed {seed}: {what}: {request!r}"[:3000])
        self.seed = seed


def hold(border: Border, first: int, count: int, breaks: bool = True) -> None:
    """Sends generated requests. Raises CrossedError for the first that changes what it must not change, or (with
    `breaks`) that the server answers with an internal error."""
    before = border.outside()
    for seed in range(first, first + count):
        request = border.draw(Random(seed))
        status = border.send(request)
        after = border.outside()
        if after != before:
            changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
            raise CrossedError(seed, request, f"{', '.join(changed)} changed")
        if breaks and status >= 500 and status != 501:
            raise CrossedError(seed, request, f"status {status}")
