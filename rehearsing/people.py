# SPDX-License-Identifier: Apache-2.0
"""Who acts in a rehearsal: the people of the stack, with no more access than it gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class People:
    """In whose name runs are started: `session` is the platform's own, `words` is what a report calls them."""

    session: Any
    words: str
    profile: str | None
