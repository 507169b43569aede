# SPDX-License-Identifier: Apache-2.0
"""The runs of a rehearsal: the values they get, their start, and how they are watched to their end."""

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
# A machine that a missing rule or statement keeps from the bucket does not see that its run was cancelled.
_SECONDS_TO_END = 30.0


class RunWatch(Protocol):
    """A started run, to look at repeatedly."""

    def look(self) -> RunStatus | None: ...
    def cancel(self) -> None: ...


@dataclass(frozen=True)
class Answers:
    """The values of placeholders that only the cloud knows, once the stack is up."""

    values: Mapping[str, str]

    def fill(self, text: str) -> str:
        return expand(text, self.values)

    def environment(self, values: Mapping[str, EnvValue]) -> dict[str, str]:
        return {
            name: value.value or "" if isinstance(value, Secret) else expand(value, self.values)
            for name, value in values.items()
        }

    def document(self, value: Mapping[str, Any]) -> str:
        return expand(json.dumps(value, sort_keys=True, separators=(",", ":")), self.values)


@dataclass(frozen=True)
class StartedRun:
    """A run that was to start. `refused` says why it did not."""

    job: JobPlan
    run: RunPlan
    nodes: tuple[NodeRun, ...] = ()
    refused: str = ""


def watch_to_end(
    watch: RunWatch, started: StartedRun, minutes: float, tell: Tell, enough: Callable[[], bool] = lambda: False
) -> tuple[RunStatus | None, str]:
    """The run at its end. It is cancelled if it takes too long or `enough` is true; the text then says why."""
    deadline, shown, why = time.monotonic() + minutes * 60, RunProgress(tell), ""
    while True:
        run = watch.look()
        if run is not None:
            shown.tell(run)
        late = time.monotonic() > deadline
        if run is None or run.over or (why and late):
            return run, why
        if not why and (late or started.refused or enough()):
            why = f"it had not ended after {minutes:g} minutes and was cancelled" if late else "it was cancelled"
            watch.cancel()
            deadline = time.monotonic() + _SECONDS_TO_END
        time.sleep(_SECONDS_BETWEEN_LOOKS)


class RunProgress:
    """Progress on stderr: one line for each change of a rank."""

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
