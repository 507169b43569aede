# SPDX-License-Identifier: Apache-2.0
"""Lines that nodes printed, as a platform's log service has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from components.platform.calls import Call
from components.platform.status import NodeStatus, RunStatus
from launcher.redraws import Lines

# A redrawn line, such as a progress bar, has several entries (launcher/redraws.py).
ENTRIES_OF_A_LINE = 4


def look_for_lines(
    call: Call, read: Callable[[], list[str]], patiently: bool, looks: int = 5, seconds_between: float = 2.0
) -> list[str]:
    """The first lines that `read` finds. Log services show lines some seconds after they are written."""
    for look in range(looks if patiently else 1):
        if look:
            call.report.status("waiting for the last log lines")
            call.stop.wait(seconds_between)
        if lines := read():
            return lines
    return []


def name_of_node(node: NodeStatus) -> str:
    return f"{node.rank} {node.run.name}"


def split_prefix(name: str, text: str) -> tuple[str, str]:
    """The prefix of a node's line, and its text without the prefix that the launcher puts before its own lines."""
    return f"[{name}] ", text.removeprefix(f"[{name.partition(' ')[2]}] ")


@dataclass(kw_only=True)
class LogMerger(ABC):
    """Lines of several nodes. Repeated calls return each line only once."""

    ranks: frozenset[int] = frozenset()
    _whole: Lines = field(default_factory=Lines)

    @abstractmethod
    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        """The lines since the last call, with prefixes."""

    def unfinished(self) -> Iterator[str]:
        """The incomplete last lines, as they currently are."""
        return (f"{prefix}{text}" for prefix, text in self._whole.unfinished())

    def add(self, name: str, text: str) -> Iterator[str]:
        """The lines that are complete with this one of a node."""
        prefix, own = split_prefix(name, text)
        return (f"{prefix}{whole}" for whole in self._whole.add(prefix, own))
