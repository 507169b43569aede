# SPDX-License-Identifier: Apache-2.0
"""How many of a kind to try, and from which seed on: a sample, or what `make torture` asks for."""

from __future__ import annotations

import os

FIRST = int(os.environ.get("TRAINYARD_FIRST_SEED") or 0)


def wanted(sample: int, full: int) -> int:
    """TRAINYARD_TORTURE unset: the sample; 1: the full count; any other number: as many as that."""
    told = int(os.environ.get("TRAINYARD_TORTURE") or 0)
    return {0: sample, 1: full}.get(told, told)
