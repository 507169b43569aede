# SPDX-License-Identifier: Apache-2.0
"""Asks the hosts what the firewalls of a run saw: once when the run is over, and now and then while it lives."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localcloud.api.operations import LocalCloud
from localcloud.console.connections import connections
from localcloud.console.platform import PlaceNames
from localcloud.console.runs import TrainingRun

# A living run's firewalls are read again after so many seconds, and after many times as long as it took.
_EVERY_SECONDS, _TIMES = 4.0, 20
_MOST_KEPT = 64


@dataclass
class _Drawn:
    """What is known of one run's network, and when it is to be read again."""

    content: Mapping[str, Any]
    over: bool
    again_at: float


@dataclass
class EvidenceBook:
    """The networks of the runs that somebody looks at. Several readers of one run share what was read."""

    cloud: LocalCloud
    _drawn: dict[str, _Drawn] = field(default_factory=dict)

    async def network(self, run: TrainingRun, places: PlaceNames) -> Mapping[str, Any]:
        drawn = self._drawn.get(run.key)
        if drawn and (drawn.over or (not run.over and time.monotonic() < drawn.again_at)):
            return drawn.content
        began = time.monotonic()
        if drawn:  # until this one has read, others are shown what is known
            drawn.again_at = began + 60.0
        machines = dict.fromkeys(node.machine for node in run.nodes if node.machine)
        documents = {machine: await self.cloud.evidence(machine) for machine in machines}
        now = time.monotonic()
        again_at = now + max(_EVERY_SECONDS, _TIMES * (now - began))
        self._drawn.pop(run.key, None)
        while len(self._drawn) >= _MOST_KEPT:
            del self._drawn[next(iter(self._drawn))]
        self._drawn[run.key] = _Drawn(connections(run, documents, places), run.over, again_at)
        return self._drawn[run.key].content
