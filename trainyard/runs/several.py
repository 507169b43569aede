# SPDX-License-Identifier: Apache-2.0
"""Runs in several places at once, such as those of all stacks of the local cloud, whatever platforms they are on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from components.platform.look import FolderPlace, RunLook
from components.platform.status import MachineSeen, RunStatus


@dataclass
class SeveralLooks:
    """`components.platform.look.RunLook`: each run is asked for where it was seen last."""

    where: str
    looks: Sequence[RunLook]
    _seen: list[tuple[RunStatus, RunLook]] = field(default_factory=list)

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        self._seen = [(run, look) for look in self.looks for run in look.look(deeply, history)]
        return sorted((run for run, _ in self._seen), key=lambda run: (run.created, run.title))

    def machines(self) -> Sequence[MachineSeen]:
        return [machine for look in self.looks for machine in look.machines()]

    def lines(self, runs: Iterable[RunStatus], ranks: frozenset[int]) -> Iterator[str]:
        wanted = {id(run) for run in runs}
        for one in self.looks:
            if mine := [run for run, look in self._seen if look is one and id(run) in wanted]:
                yield from one.lines(mine, ranks)

    def unfinished(self, ranks: frozenset[int]) -> Sequence[str]:
        return [line for look in self.looks for line in look.unfinished(ranks)]

    def place_of(self, run: RunStatus) -> FolderPlace | None:
        look = self._look_of(run)
        return look.place_of(run) if look is not None else None

    def cancel(self, run: RunStatus) -> None:
        look = self._look_of(run)
        if look is not None:
            look.cancel(run)

    def _look_of(self, run: RunStatus) -> RunLook | None:
        return next((look for seen, look in self._seen if seen is run), None)
