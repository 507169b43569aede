# SPDX-License-Identifier: Apache-2.0
"""Starts the runs of a rehearsal, and watches each to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import Tell
from components.platform.rehearsal import People, Placeholders, RehearsalPlatform, RunWatch, StartedRun
from components.platform.status import RunStatus, progress
from launcher.escaping import terminal
from localcloud.control import Cloud

_SECONDS_BETWEEN_LOOKS = 0.5
# How long to wait after a cancel. A machine that cannot reach the bucket, for lack of a rule or statement, never sees
# the cancel.
_SECONDS_TO_END = 30.0


def watch_to_end(
    watch: RunWatch, started: StartedRun, minutes: float, tell: Tell, enough: Callable[[], bool] = lambda: False
) -> tuple[RunStatus | None, str]:
    """The run at its end, and why it was cancelled, or "". It is cancelled on timeout, or when `enough()` is true."""
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
    """Prints one line of progress for each change of a rank."""

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


@dataclass(frozen=True)
class RepeatableRun:
    """A run that can be started any number of times, with everything that a start needs."""

    platform: RehearsalPlatform
    cloud: Cloud
    who: People
    plan: Plan
    job: JobPlan
    run: RunPlan
    outputs: Mapping[str, Any]
    answers: Placeholders
    minutes: float
    tell: Tell

    def start(self) -> StartedRun:
        return self.platform.start(self.who, self.plan, self.job, self.run, self.outputs, self.answers, self.tell)

    def watch_to_end(
        self, started: StartedRun, enough: Callable[[], bool] = lambda: False
    ) -> tuple[RunStatus | None, str]:
        """The run at its end, and why it was cancelled. None if it was not started."""
        if not started.nodes:
            return None, ""
        watch = self.platform.watch(self.who, self.plan, started, self.tell)
        return watch_to_end(watch, started, self.minutes, self.tell, enough)


def replace_attempt(again: RepeatableRun, attempt: int) -> RepeatableRun:
    """The same run with another attempt number, and so with another folder in the bucket."""
    before = f"/{again.run.attempt}"
    nodes = tuple(
        replace(
            node,
            launch={
                **node.launch,
                "attempt": attempt,
                "folder": str(node.launch.get("folder") or "").removesuffix(before) + f"/{attempt}",
            },
        )
        for node in again.run.nodes
    )
    return replace(again, run=replace(again.run, attempt=attempt, nodes=nodes))
