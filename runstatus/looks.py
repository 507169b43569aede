# SPDX-License-Identifier: Apache-2.0
"""What looks at runs have alike on every platform: patience, merged lines, and what the local cloud remembers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

from components.platform.calls import Call
from components.platform.local_cloud import LocalCloud
from components.platform.progress import ProgressPoint
from components.platform.status import MachineSeen, RunStatus
from localcloud import admin
from localcloud.control import CloudError

# Somebody waits for the first look. A cloud that has answered once may fall silent for a while.
FIRST_PATIENCE = 10.0


class Looker(Protocol):
    """Asks a platform for its runs, with the patience of its call."""

    call: Call

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]: ...


class LineMerger(Protocol):
    def new(self, runs: Iterable[RunStatus]) -> Iterator[str]:
        """What came since the last time, with prefixes."""

    def unfinished(self) -> Iterator[str]:
        """The lines that still grow, as they stand."""


class FolderPlace(Protocol):
    @property
    def bucket(self) -> str: ...

    @property
    def prefix(self) -> str: ...


L = TypeVar("L", bound=Looker)


@dataclass
class Look(Generic[L]):
    """`components.platform.look.RunLook`, but for what a platform's own class adds."""

    looker: L
    # Of all looks but the first.
    patience: float
    cloud: LocalCloud | None = None
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

    def recall(self, run: RunStatus) -> Mapping[int, Sequence[ProgressPoint]]:
        place = self.place_of(run.folder)
        if self.cloud is None or place is None:
            return {}
        try:
            return admin.read_progress(self.cloud, place.bucket, place.prefix)
        except CloudError:  # progress is a help, states are told without it
            return {}

    def merger(self, ranks: frozenset[int]) -> LineMerger:
        """Merges the lines of these ranks; of all where there are none."""
        raise NotImplementedError

    def place_of(self, folder: str | None) -> FolderPlace | None:
        """Where in a bucket a start's folder is."""
        raise NotImplementedError
