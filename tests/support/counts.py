# SPDX-License-Identifier: Apache-2.0
"""How many of a kind to try, and from which seed on: a sample, or what `make torture` asks for."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

FIRST = int(os.environ.get("TRAINYARD_FIRST_SEED") or 0)


def wanted(sample: int, full: int) -> int:
    """TRAINYARD_TORTURE unset: the sample; 1: the full count; any other number: as many as that."""
    told = int(os.environ.get("TRAINYARD_TORTURE") or 0)
    return {0: sample, 1: full}.get(told, told)


def drawn(rows: Sequence[T], sample: int) -> list[T]:
    """`make test`: a few rows, others with another TRAINYARD_SEED and the same for everybody; torture: all of them."""
    if wanted(0, 1):
        return list(rows)
    return random.Random(os.environ.get("TRAINYARD_SEED", "1")).sample(list(rows), min(sample, len(rows)))
