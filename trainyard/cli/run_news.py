# SPDX-License-Identifier: Apache-2.0
"""What a person who follows a run has to know beside its output: dropped packets while they happen, why it failed, and
that its log has no line."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from components.platform.calls import ProviderError
from components.platform.client import UnknownPlaceError
from components.platform.local import LocalStackError
from components.platform.status import ConnectionsSeen, RunStatus
from launcher.escaping import terminal_line
from localcloud.control import CloudError
from trainyard.cli.out import say_aside
from trainyard.cli.runs_text import MOST_DROPPED, dropped_text, problems_of, reason_of_run
from trainyard.why.judge import known_cause

if TYPE_CHECKING:
    from trainyard.runs.run_looks import Look

_SECONDS_BETWEEN_LOOKS, _LAST_LOOK_SECONDS = 5.0, 2.0
# A pair is mentioned again when it has lost this many times as many packets.
_GROWTH = 10


@dataclass
class DroppedNews:
    """Finds the dropped packets that are worth a line: each pair and port once, and again when they have grown."""

    _said: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _pairs: Counter[str] = field(default_factory=Counter)

    def new_lines(self, run: RunStatus) -> Iterator[str]:
        """Lines for a terminal. After the first pairs of a run it only says that there are more."""
        start = run.nodes[0].run.id
        for dropped in run.dropped or ():
            key, packets = (start, dropped.pair, dropped.missing), dropped.packets
            before = self._said.get(key)
            if before is not None and packets < before * _GROWTH:
                continue
            if before is None:
                self._pairs[start] += 1
                if self._pairs[start] == MOST_DROPPED + 1:
                    yield terminal_line(f"{run.title}: packets of further pairs are dropped; `trainyard runs` has all")
            self._said[key] = packets
            if before is not None or self._pairs[start] <= MOST_DROPPED:
                yield terminal_line(f"{run.title}: {dropped_text(dropped)}")


@contextmanager
def drops_shown_while(
    find_look: Callable[[], Look], connections: Callable[[RunStatus], ConnectionsSeen | None]
) -> Iterator[None]:
    """Meanwhile tells which packets between the nodes of runs are dropped, from a thread of its own."""
    done, news = threading.Event(), DroppedNews()

    def watch() -> None:
        look: Look | None = None
        while not done.wait(_SECONDS_BETWEEN_LOOKS):
            # Until the stack is up there may be no place of runs, and what cannot be read now is read later.
            with suppress(ProviderError, UnknownPlaceError, CloudError, LocalStackError):
                look = look or find_look()
                # Without the launchers' status, which a deployer may not read. Node groups have no names then.
                for run in look.look(deeply=False):
                    if not run.over and len(run.nodes) > 1 and not done.is_set():
                        for line in news.new_lines(replace(run, connections=connections(run))):
                            say_aside(line)

    thread = threading.Thread(target=watch, name="dropped packets", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(_LAST_LOOK_SECONDS)


def end_lines(run: RunStatus) -> Iterator[str]:
    """Why a run did not succeed, and its dropped packets. Escaped for a terminal."""
    problems = list(problems_of(run))
    # Without a launcher's word, the platform may know why, such as for an image that is not there.
    if run.state != "SUCCEEDED" and not known_cause(run) and (reason := reason_of_run(run)):
        yield terminal_line(reason)
    yield from problems


def empty_log_lines(runs: Sequence[RunStatus]) -> Iterator[str]:
    """A remark for runs that have ended, whose nodes began, and whose log was read and has nothing of them."""
    for run in runs:
        if run.over and all(node.log is not None and node.run.started_at for node in run.nodes):
            yield terminal_line(
                f"{run.title}: its log has no line so far. Either it printed nothing, or runs may not write there: "
                f"`trainyard access {run.stack}` prints the statement with which they write log lines"
            )
