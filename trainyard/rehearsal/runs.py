# SPDX-License-Identifier: Apache-2.0
"""Starts the runs of a rehearsal, and watches each to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import ProviderError, Tell, call_of
from components.platform.inputs import with_defaults
from components.platform.rehearsal import People, Placeholders, RehearsalPlatform, StartedRun
from components.platform.runs import NodeRun, run_spec
from components.platform.status import RunStatus, WantedRuns, progress
from launcher.escaping import terminal
from localcloud.control import Cloud

_SECONDS_BETWEEN_LOOKS = 0.5
# How long to wait after a cancel. A machine that cannot reach the bucket, for lack of a rule or statement, never sees
# the cancel.
_SECONDS_TO_END = 30.0


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
        """Starts the run with the inputs that `up` would give it. It does not wait for access to take effect: on the
        local cloud, access is in force at once."""
        inputs = self.platform.inputs(self.who, self.plan, self.job, self.run, self.outputs, self.answers, self.tell)
        spec = run_spec(f"rehearsal of {self.plan.stack}: {self.job.name}/{self.run.name}", with_defaults(inputs))
        spec = replace(spec, timeouts=replace(spec.timeouts, access=0.0))
        made: list[NodeRun] = []
        try:
            made.extend(self.who.runs.ensure(call_of("rehearse", self.tell), spec, ()))
        except ProviderError as refused:
            return StartedRun(self.job, self.run, tuple(made), f"{self.who.words} could not start it: {refused.cause}")
        return StartedRun(self.job, self.run, tuple(made))

    def watch_to_end(
        self, started: StartedRun, enough: Callable[[], bool] = lambda: False
    ) -> tuple[RunStatus | None, str]:
        """The run at its end, and why it was cancelled, or "". It is cancelled on timeout, or when `enough()` is true.
        None if it was not started."""
        if not started.nodes:
            return None, ""
        runs, call = self.who.runs, call_of("rehearse", self.tell)
        reader = runs.reader(WantedRuns(self.plan.stack, self.job.name, self.run.name))
        deadline, shown, why = time.monotonic() + self.minutes * 60, RunProgress(self.tell), ""
        while True:
            run = next(iter(reader.look(call)), None)
            if run is not None:
                shown.tell(run)
            late = time.monotonic() > deadline
            if run is None or run.over or (why and late):
                return run, why
            if not why and (late or started.refused or enough()):
                ended = f"it had not ended after {self.minutes:g} minutes and was cancelled"
                why = ended if late else "it was cancelled"
                runs.cancel(call, started.nodes)
                deadline = time.monotonic() + _SECONDS_TO_END
            time.sleep(_SECONDS_BETWEEN_LOOKS)


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
