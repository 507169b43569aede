# SPDX-License-Identifier: Apache-2.0
"""Lines of runs as they come. Those that still grow, such as progress bars, are drawn below the others."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from launcher.escaping import terminal
from trainyard.cli.out import draw, say

# Where nothing can be drawn over, such as in a pipe, a bar is a line now and then.
BAR_SECONDS = 10.0


@dataclass
class Follower:
    """On a terminal growing lines are drawn over themselves; elsewhere each is printed, if it has changed, every ten
    seconds."""

    draws: bool
    _drawn: list[str] = field(default_factory=list)
    _printed: set[str] = field(default_factory=set)
    _printed_at: float = -BAR_SECONDS

    def show(self, lines: Iterable[str], growing: Callable[[], Sequence[str]], last: bool) -> None:
        """`growing` is asked once the lines are there. `last`: nothing comes after them."""
        if not self.draws:
            for line in lines:
                say(terminal(line))
            self._print(growing(), last)
            return
        new, bars = [*map(terminal, lines)], [*map(terminal, growing())]
        if last:
            new, bars = [*new, *bars], []
        size = shutil.get_terminal_size()
        # More rows than there are, or rows that wrap, could not be drawn over.
        bars = [bar[: size.columns - 1] for bar in bars][-(size.lines - 1) :]
        if new or bars != self._drawn:
            draw([*new, *bars], over=len(self._drawn))
            self._drawn = bars

    def _print(self, bars: Sequence[str], last: bool) -> None:
        if not last and time.monotonic() - self._printed_at < BAR_SECONDS:
            return
        for bar in bars:
            if last or bar not in self._printed:
                say(terminal(bar))
        if bars:
            self._printed, self._printed_at = set(bars), time.monotonic()
