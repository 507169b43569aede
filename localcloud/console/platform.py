# SPDX-License-Identifier: Apache-2.0
"""What the console shows of a platform. Each platform's folder answers, from its own state inside the cloud."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

from catalog.platforms import platform_folder, platforms
from components.platform.progress import ProgressPoint
from launcher.redraws import Lines
from localcloud.console.runs import TrainingRun
from localcloud.server.cloud import ServedCloud

# So many things of a kind are shown.
MANY = 100
# So many lines of a run are shown, and so much of each.
LINES, LONGEST_LINE = 40, 2_000
# They are put together from so many entries of a log: a progress bar has several.
ENTRIES = 100
Item = dict[str, Any]
Evidence = Mapping[str, Any]
Points = Mapping[int, Sequence[ProgressPoint]]
R = TypeVar("R", bound=TrainingRun)


@dataclass(frozen=True)
class Section:
    """Items under a title. Platforms may share a title: then their items stand together.

    `empty` says that there is none. A section without it, and without items, is left out. `last`: of little interest.
    """

    title: str
    items: Sequence[Item]
    empty: str = ""
    last: bool = False


@dataclass(frozen=True)
class RunContent:
    """`statuses`: what launchers say now, by rank. `points`: how far the ranks came. `lines`: what was printed last."""

    facts: Sequence[Sequence[str]] = ()
    statuses: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    points: Points = field(default_factory=dict)
    lines: Sequence[str] = ()


class PlaceNames(Protocol):
    """How places outside of a run are called. `note`: what else a reader of the drawing has to know."""

    names: Mapping[str, str]
    note: str

    def addresses_of(self, peer: str) -> tuple[str, ...]:
        """The addresses that a rule's peer stands for. Empty for a block of addresses."""


class ConsolePlatform(Protocol[R]):
    """Everything is bounded, and nothing changes. It may be asked again at once, so it remembers what it parsed."""

    places: PlaceNames

    async def runs(self) -> Sequence[R]:
        """The newest runs, the newest first."""

    async def content(self, run: R, most: int) -> RunContent:
        """What is inside of a run, with at most so many points of each rank."""

    async def sections(self) -> Sequence[Section]:
        """Always the same titles, in the same order."""

    def facts(self) -> Sequence[tuple[str, str]]:
        """What tells this platform of this cloud from others."""


def console_platforms(cloud: ServedCloud) -> Iterator[ConsolePlatform[Any]]:
    for name in platforms():
        home = f"localcloud.{platform_folder(name)}"
        if find_spec(home):
            made: ConsolePlatform[Any] = import_module(f"{home}.console.platform").make(cloud)
            yield made


def shown_lines(run: TrainingRun, entries: Iterable[tuple[object, str]]) -> list[str]:
    """The last lines of these entries, each with its rank; progress bars as they stand."""
    lines = Lines()
    shown = [(str(rank), line) for rank, text in entries for line in lines.add(str(rank), text)]
    return [_prefixed(run, rank, line) for rank, line in [*shown, *lines.unfinished()][-LINES:]]


def _prefixed(run: TrainingRun, rank: str, text: str) -> str:
    """A line of a rank. Where a run has one node, its lines have no marks."""
    line = text[:LONGEST_LINE]
    return line if len(run.nodes) == 1 else f"[{rank}] {line}"
