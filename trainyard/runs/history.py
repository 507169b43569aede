# SPDX-License-Identifier: Apache-2.0
"""How far each rank came, over the time that somebody watches; before that, as far as the place itself remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from components.platform.local_cloud import LocalCloud
from components.platform.look import RunLook
from components.platform.progress import ProgressPoint, crowded, read_point
from components.platform.status import RunStatus
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
