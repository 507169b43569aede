# SPDX-License-Identifier: Apache-2.0
"""How many cases a test runs, and from which seed on: a sample, or as many as `make torture` asks for."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

FIRST = int(os.environ.get("TRAINYARD_FIRST_SEED") or 0)


def wanted(sample: int, full: int) -> int:
    """The number of cases. TRAINYARD_TORTURE unset: `sample`; 1: `full`; any other number: that number."""
    told = int(os.environ.get("TRAINYARD_TORTURE") or 0)
    return {0: sample, 1: full}.get(told, told)


def drawn(rows: Sequence[T], sample: int) -> list[T]:
    """`make test`: a sample of the rows, the same for the same TRAINYARD_SEED. `make torture`: all of them."""
    if wanted(0, 1):
        return list(rows)
    return random.Random(os.environ.get("TRAINYARD_SEED", "1")).sample(list(rows), min(sample, len(rows)))
