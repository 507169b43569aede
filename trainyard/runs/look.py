# SPDX-License-Identifier: Apache-2.0
"""Runs as somebody watches them: in several places at once, and how far each rank came over the time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from components.platform.local_cloud import LocalCloud
from components.platform.look import FolderPlace, RunLook
from components.platform.progress import ProgressPoint, crowded, read_point
from components.platform.status import MachineSeen, RunStatus
from localcloud import admin
from localcloud.control import CloudError

Series = Mapping[int, Sequence[ProgressPoint]]


@dataclass
class ProgressHistory:
    """Collects the points of each rank. `recall` is asked once for each run."""

    recall: Callable[[RunStatus], Series]
    _points: dict[str, dict[int, list[ProgressPoint]]] = field(default_factory=dict)

    def observe(self, run: RunStatus, moment: float) -> Series:
        """Every point of a run, the newest included."""
        start = run.nodes[0].run.id
        if start not in self._points:
            self._points[start] = {rank: list(points) for rank, points in self.recall(run).items()}
        for node in run.nodes:
            own = self._points[start].setdefault(node.rank, [])
            point = read_point(moment, (node.launcher_status or {}).get("progress"))
            if point is not None and (not own or own[-1].content != point.content):
                own.append(point)
                gone = crowded([one.moment for one in own])
                if gone is not None:
                    del own[gone]
        return self._points[start]


def recalled(look: RunLook, cloud: LocalCloud | None) -> Callable[[RunStatus], Series]:
    """What the local cloud remembers of a run's reports. Real clouds remember none."""

    def recall(run: RunStatus) -> Series:
        place = look.place_of(run)
        if cloud is None or place is None:
            return {}
        try:
            return admin.read_progress(cloud, place.bucket, place.prefix)
        except CloudError:  # progress is a help, states are told without it
            return {}

    return recall


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
