# SPDX-License-Identifier: Apache-2.0
"""The interface that reads runs and their logs from a platform, repeatedly: for `runs list`, `logs` and `watch`."""

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

# How many seconds the first read retries a cloud that does not answer: the user waits for it. Later reads may take
# longer.
FIRST_PATIENCE = 10.0


class UnknownPlaceError(Exception):
    """The command does not know where the runs are. The text says how to name the place."""


@dataclass(frozen=True)
class Question:
    """Which runs to read, and where: on the local `cloud`, at the `place` that the user named, or by `config`.

    `config` is the stack file's configuration, empty without a stack. `profile`: the caller's profile; by default the
    one that every client uses. `bucket` returns the name of the stack's bucket, for platforms that find runs there.
    """

    config: Mapping[str, Any]
    cloud: LocalCloud | None
    place: str | None
    wanted: WantedRuns
    tell: Tell
    profile: str | None = None
    bucket: Callable[[], str] | None = None
    # The folder that paths in the stack file are relative to.
    folder: Path | None = None
    # Returns the firewall's counts of a run, if the caller knows them better than the platform does.
    connections: Callable[[RunStatus], ConnectionsSeen | None] | None = None


class FolderPlace(Protocol):
    @property
    def bucket(self) -> str: ...

    @property
    def prefix(self) -> str: ...


class RunLook(Protocol):
    """Reads the runs again and again, and caches what never changes about a run."""

    @property
    def where(self) -> str:
        """The place where it reads, in the platform's terms."""

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        """Every run, the oldest first. `deeply`: with the launchers' status. `history`: with earlier attempts."""

    def machines(self) -> Sequence[MachineSeen]:
        """Machines that stay between runs, and cost while they are up. Empty if each run has its own machines."""

    def lines(self, runs: Iterable[RunStatus], ranks: frozenset[int]) -> Iterator[str]:
        """The complete log lines since the last call, each with its rank. Without ranks: of all ranks."""

    def unfinished(self, ranks: frozenset[int]) -> Sequence[str]:
        """The incomplete last lines, such as progress bars, as they were at the last call of `lines`."""

    def place_of(self, run: RunStatus) -> FolderPlace | None:
        """The bucket and folder of a start. None if starts have no folder in a bucket."""

    def cancel(self, run: RunStatus) -> None:
        """Asks every rank of the run to stop."""


def run_look(question: Question) -> RunLook:
    """The reader for the platform. Raises UnknownPlaceError if the question does not say where the runs are."""
    return answers(platform_in(question.config)).look(question)


class Looker(Protocol):
    """Reads a platform's runs. Its call says how long it retries."""

    call: Call

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]: ...


class LineMerger(Protocol):
    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        """The complete lines since the last call, with prefixes."""

    def unfinished(self) -> Iterator[str]:
        """The incomplete last lines."""


L = TypeVar("L", bound=Looker)


@dataclass
class Look(Generic[L]):
    """The common part of every platform's `RunLook`: patience, and merged log lines."""

    looker: L
    # Patience of all reads but the first.
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
        """Merges the lines of these ranks. Without ranks: of all."""
        raise NotImplementedError
