# SPDX-License-Identifier: Apache-2.0
"""A curve in a line of text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TextIO

from components.platform.progress import thin

BLOCKS, ASCII = "▁▂▃▄▅▆▇█", "_.-:=+*#"
GAP = " "


def levels_of(stream: TextIO, environment: Mapping[str, str] = os.environ) -> str:
    """The letters that the terminal can show, from the lowest to the highest."""
    encoding = (getattr(stream, "encoding", "") or "").lower().replace("-", "")
    return BLOCKS if encoding == "utf8" and environment.get("TERM") != "dumb" else ASCII


def sparkline(values: Sequence[float | None], width: int, levels: str) -> str:
    """At most `width` letters. There is a gap where there was no number."""
    chosen = thin(values, width)
    numbers = [value for value in chosen if value is not None]
    if not numbers:
        return ""
    # Halves are compared, because the distance between two large numbers may be no number.
    low, high = min(numbers) / 2, max(numbers) / 2
    top = len(levels) - 1

    def letter(value: float | None) -> str:
        if value is None:
            return GAP
        return levels[round((value / 2 - low) / (high - low) * top) if high > low else top // 2]

    return "".join(map(letter, chosen))
