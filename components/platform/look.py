# SPDX-License-Identifier: Apache-2.0
"""How runs are looked at on a platform."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from catalog.platforms import platform_in
from components.platform.base import answers
from components.platform.calls import Call, Tell
from components.platform.local_cloud import LocalCloud
from components.platform.status import ConnectionsSeen, MachineSeen, RunStatus, WantedRuns

# Somebody waits for the first look. A cloud that has answered once may fall silent for a while.
FIRST_PATIENCE = 10.0


class UnknownPlaceError(Exception):
    """Nobody said where the runs are. The text says how to."""


@dataclass(frozen=True)
class Question:
    """Which runs, and where: on the local `cloud`, at the `place` that a person named, or where `config` says.

    `config` is the stack file's, empty where no stack was named. `profile`: the caller's, else every client's.
    `bucket` gives the name of the stack's bucket, for platforms whose runs are found there.
    """

    config: Mapping[str, Any]
    cloud: LocalCloud | None
    place: str | None
    wanted: WantedRuns
    tell: Tell
    profile: str | None = None
    bucket: Callable[[], str] | None = None
    # Where the stack file's paths start.
    folder: Path | None = None
    # What the rules let through and stopped in a run, where whoever asks knows it better than the platform.
    connections: Callable[[RunStatus], ConnectionsSeen | None] | None = None


class FolderPlace(Protocol):
    @property
    def bucket(self) -> str: ...

    @property
    def prefix(self) -> str: ...


class RunLook(Protocol):
    """Looks again and again; what never changes of a run is asked for once."""

    @property
    def where(self) -> str:
        """Where it looks, in the platform's words."""

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        """Every run, the oldest first; `deeply` with what the launchers say, `history` with earlier attempts."""

    def machines(self) -> Sequence[MachineSeen]:
        """Machines that stay between runs, and cost meanwhile. Empty where each run has machines of its own."""

    def lines(self, runs: Iterable[RunStatus], ranks: frozenset[int]) -> Iterator[str]:
        """The lines that have ended since the last time, each with its rank. No ranks: all of them."""

    def unfinished(self, ranks: frozenset[int]) -> Sequence[str]:
        """The lines that the runs still draw, such as progress bars, as they stood when lines were asked for last."""

    def place_of(self, run: RunStatus) -> FolderPlace | None:
        """Where in a bucket a start's folder is. None where starts have no folder in a bucket."""

    def cancel(self, run: RunStatus) -> None:
        """Asks every rank of the run to stop."""


def run_look(question: Question) -> RunLook:
    """Raises UnknownPlaceError where nobody said where the runs are."""
    return answers(platform_in(question.config)).look(question)


class Looker(Protocol):
    """Asks a platform for its runs, with the patience of its call."""

    call: Call

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]: ...


class LineMerger(Protocol):
    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        """What came since the last time, with prefixes."""

    def unfinished(self) -> Iterator[str]:
        """The lines that still grow, as they stand."""


L = TypeVar("L", bound=Looker)


@dataclass
class Look(Generic[L]):
    """`RunLook`, but for what a platform's own class adds: patience and merged lines are alike on all of them."""

    looker: L
    # Of all looks but the first.
    patience: float
    _merged: dict[frozenset[int], LineMerger] = field(default_factory=dict)

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        runs = self.looker.look(deeply, history)
        self.looker.call = replace(self.looker.call, patience=self.patience)
        return runs

    def machines(self) -> Sequence[MachineSeen]:
        return ()

    def lines(self, runs: Iterable[RunStatus], ranks: frozenset[int]) -> Iterator[str]:
        if ranks not in self._merged:
            self._merged[ranks] = self.merger(ranks)
        return self._merged[ranks].new(runs)

    def unfinished(self, ranks: frozenset[int]) -> Sequence[str]:
        return list(self._merged[ranks].unfinished()) if ranks in self._merged else ()

    def merger(self, ranks: frozenset[int]) -> LineMerger:
        """Merges the lines of these ranks; of all where there are none."""
        raise NotImplementedError
