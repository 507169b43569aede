# SPDX-License-Identifier: Apache-2.0
"""Generated requests to a cloud, from somebody who may do little, at every seam where two readers could differ.

The oracle is the cloud's store: what lies outside of the sender's rights is the same before and after. What a judge
said, or what was answered, proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Protocol


class Border(Protocol):
    """One cloud under generated requests. `draw` is a request of a seed, `send` its status."""

    def draw(self, random: Random) -> Any: ...

    def send(self, request: Any) -> int: ...

    def outside(self) -> Mapping[str, Any]:
        """All that this sender may neither change nor read, by the name of the thing."""


class CrossedError(AssertionError):
    """What a request changed that its sender had no right to."""

    def __init__(self, seed: int, request: Any, what: str) -> None:
        super().__init__(f"seed {seed}: {what}: {request!r}"[:3000])
        self.seed = seed


def hold(border: Border, first: int, count: int, breaks: bool = True) -> None:
    """Sends as many requests. CrossedError for the first that changes what it may not, or (`breaks`) that the server
    cannot answer."""
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
