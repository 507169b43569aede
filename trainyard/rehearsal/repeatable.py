# SPDX-License-Identifier: Apache-2.0
"""A run with all that is needed to start it: once for the rehearsal, and again to compare or to confirm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import Tell
from components.platform.rehearsal import RehearsalPlatform
from components.platform.rehearsed_runs import Answers, People, StartedRun
from components.platform.status import RunStatus
from localcloud.control import Cloud
from trainyard.rehearsal.runs import watch_to_end


@dataclass(frozen=True)
class RepeatableRun:
    """A run that can be started any number of times, and the place where it starts."""

    platform: RehearsalPlatform
    cloud: Cloud
    who: People
    plan: Plan
    job: JobPlan
    run: RunPlan
    outputs: Mapping[str, Any]
    answers: Answers
    minutes: float
    tell: Tell

    def start(self) -> StartedRun:
        return self.platform.start(self.who, self.plan, self.job, self.run, self.outputs, self.answers, self.tell)

    def watch_to_end(
        self, started: StartedRun, enough: Callable[[], bool] = lambda: False
    ) -> tuple[RunStatus | None, str]:
        """The run at its end, and why it was cancelled. None where nothing was started."""
        if not started.nodes:
            return None, ""
        watch = self.platform.watch(self.who, self.plan, started, self.tell)
        return watch_to_end(watch, started, self.minutes, self.tell, enough)


def replace_attempt(again: RepeatableRun, attempt: int) -> RepeatableRun:
    """The same run as another attempt, so it has another folder in the bucket."""
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
