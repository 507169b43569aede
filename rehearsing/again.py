# SPDX-License-Identifier: Apache-2.0
"""A run and all that it takes to start it: once for the rehearsal, and again to compare or to confirm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.plan.model import JobPlan, Plan, RunPlan
from localcloud.control import Cloud
from provider.base.asking import Tell
from rehearsing.people import People
from rehearsing.platform import RehearsalPlatform
from rehearsing.runs import Answers, Started, watched
from runstatus.seen import RunStatus


@dataclass(frozen=True)
class Again:
    """The run that is started, and where."""

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

    def start(self) -> Started:
        return self.platform.start(self.who, self.plan, self.job, self.run, self.outputs, self.answers, self.tell)

    def watched(self, started: Started, enough: Callable[[], bool] = lambda: False) -> tuple[RunStatus | None, str]:
        """The run at its end, and why it was cancelled. None where nothing was started."""
        if not started.nodes:
            return None, ""
        watch = self.platform.watch(self.who, self.plan, started, self.tell)
        return watched(watch, started, self.minutes, self.tell, enough)


def replace_attempt(again: Again, attempt: int) -> Again:
    """The same run once more: its folder in the bucket is another, as for any higher attempt."""
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
