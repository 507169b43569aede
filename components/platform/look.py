# SPDX-License-Identifier: Apache-2.0
"""How runs are looked at on a platform."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from catalog.platforms import platform_in
from components.platform.base import answers
from components.platform.calls import Tell
from components.platform.local_cloud import LocalCloud
from components.platform.progress import ProgressPoint
from components.platform.status import MachineSeen, RunStatus, WantedRuns


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

    def recall(self, run: RunStatus) -> Mapping[int, Sequence[ProgressPoint]]:
        """What the ranks reported before, as far as the place itself remembers it."""

    def cancel(self, run: RunStatus) -> None:
        """Asks every rank of the run to stop."""


def run_look(question: Question) -> RunLook:
    """Raises UnknownPlaceError where nobody said where the runs are."""
    return answers(platform_in(question.config)).look(question)
