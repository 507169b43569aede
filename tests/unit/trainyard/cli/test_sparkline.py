# SPDX-License-Identifier: Apache-2.0
"""Curves in a line of text."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from trainyard.cli.runs_watch import ASCII, BLOCKS, draw_sparkline, levels_of


@pytest.mark.parametrize(
    ("values", "curve"),
    [
        ([], ""),
        ([None, None], ""),
        ([1], "▄"),
        ([3, 3, 3], "▄▄▄"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([7, None, 0], "█ ▁"),
        ([-1.7e308, 0, 1.7e308], "▁▅█"),
        (range(1000), "▁▁▁▂▂▃▃▄▅▅▆▆▇▇██"),
    ],
)
def test_a_curve_has_the_shape_of_its_values(values: Sequence[float | None], curve: str) -> None:
    drawn = draw_sparkline(values, 16, BLOCKS)
    assert len(drawn) <= 16
    if len(values) <= 16:
        assert drawn == curve
    else:
        assert (drawn[0], drawn[-1], list(drawn)) == (curve[0], curve[-1], sorted(drawn))


@pytest.mark.parametrize(
    ("encoding", "terminal", "levels"),
    [("utf-8", "xterm", BLOCKS), ("UTF8", "xterm", BLOCKS), ("utf-8", "dumb", ASCII), ("ascii", "xterm", ASCII)],
)
def test_a_curve_has_only_characters_that_the_terminal_can_show(encoding: str, terminal: str, levels: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert levels_of(stream, {"TERM": terminal}) == levels
    assert len(BLOCKS) == len(ASCII)
