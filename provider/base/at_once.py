# SPDX-License-Identifier: Apache-2.0
"""Many things of a cloud read side by side: one after another, a user would wait for each answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def read_at_once(read: Callable[[A], B], wanted: Sequence[A], most: int) -> list[B]:
    """What `read` says of each, in their order; no more than `most` are read at the same time."""
    if len(wanted) < 2:
        return [read(one) for one in wanted]
    with ThreadPoolExecutor(min(most, len(wanted))) as pool:
        return list(pool.map(read, wanted))
