# SPDX-License-Identifier: Apache-2.0
"""The runs of a rehearsal: what they are told, that they were started, and watching them to their end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from components.plan.model import JobPlan, RunPlan
from components.plan.naming import expand
from launcher.escaping import terminal
from provider.base.asking import Tell
from provider.runs.model import NodeRun
from runstatus.seen import RunStatus
from runstatus.words import progress
from schemas.model import EnvValue, Secret

_SECONDS_BETWEEN_LOOKS = 0.5


class Watch(Protocol):
    """One run that was started: looked at again and again."""

    def look(self) -> RunStatus | None: ...
    def cancel(self) -> None: ...


@dataclass(frozen=True)
class Answers:
    """What only the cloud could answer, now that the stack is up."""

    known: Mapping[str, str]

    def environment(self, values: Mapping[str, EnvValue]) -> dict[str, str]:
        return {
            name: value.value or "" if isinstance(value, Secret) else expand(value, self.known)
            for name, value in values.items()
        }

    def document(self, value: Mapping[str, Any]) -> str:
        return expand(json.dumps(value, sort_keys=True, separators=(",", ":")), self.known)


@dataclass(frozen=True)
class Started:
    """A run that was asked for; `refused` says why it did not start."""

    job: JobPlan
    run: RunPlan
    nodes: tuple[NodeRun, ...] = ()
    refused: str = ""


def watched(
    watch: Watch, started: Started, minutes: float, tell: Tell, enough: Callable[[], bool] = lambda: False
) -> tuple[RunStatus | None, str]:
    """The run at its end; if it lasts too long (or `enough` was seen) it is cancelled, and why is told."""
    deadline, said, why = time.monotonic() + minutes * 60, Said(tell), ""
    while True:
        run = watch.look()
        if run is not None:
            said.tell(run)
        if run is None or run.over:
            return run, why
        late = time.monotonic() > deadline
        if not why and (late or started.refused or enough()):
            why = f"it had not ended after {minutes:g} minutes and was cancelled" if late else "it was cancelled"
            watch.cancel()
        time.sleep(_SECONDS_BETWEEN_LOOKS)


class Said:
    """Progress on stderr: a line for each change of a rank, none for a rank that goes on."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._known: dict[int, str] = {}

    def tell(self, run: RunStatus) -> None:
        for node in run.nodes:
            now = ": ".join(
                filter(None, (node.state, progress((node.launcher_status or {}).get("progress")), node.run.details))
            )
            if self._known.get(node.rank) != now:
                self._known[node.rank] = now
                self._tell(terminal(f"  {run.title} rank {node.rank} {node.run.name}: {now}"))
