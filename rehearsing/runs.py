# SPDX-License-Identifier: Apache-2.0
"""The runs of a rehearsal: the values they get, their start, and how they are watched to their end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from components.plan.model import JobPlan, Plan, RunPlan
from components.plan.naming import expand
from components.platform.calls import Tell, call_of
from components.platform.durations import progress
from components.platform.errors import ProviderError
from components.platform.input_checks import with_defaults
from components.platform.run_platform import RunPlatform
from components.platform.runs import NodeRun, run_spec
from components.platform.status import RunStatus
from components.platform.values import Properties
from launcher.escaping import terminal
from rehearsing.people import People
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


def start_run(
    who: People, platform: RunPlatform, plan: Plan, job: JobPlan, run: RunPlan, inputs: Properties, tell: Tell
) -> StartedRun:
    """Starts a run with the inputs that `up` would give it. These people wait for no access: it is in force or not."""
    spec = run_spec(f"rehearsal of {plan.stack}: {job.name}/{run.name}", with_defaults(inputs))
    spec = replace(spec, timeouts=replace(spec.timeouts, access=0.0))
    made: list[NodeRun] = []
    try:
        made.extend(platform.ensure(call_of("rehearse", tell), spec, ()))
    except ProviderError as refused:
        return StartedRun(job, run, tuple(made), f"{who.words} could not start it: {refused.cause}")
    return StartedRun(job, run, tuple(made))


class Looks(Protocol):
    """What looks at the runs of one kind."""

    def look(self) -> Sequence[RunStatus]: ...


@dataclass
class LookedAt:
    """`RunWatch` of a run that a platform looks at. `look` wants this run only."""

    platform: RunPlatform
    looker: Looks
    started: StartedRun
    tell: Tell

    def look(self) -> RunStatus | None:
        return next(iter(self.looker.look()), None)

    def cancel(self) -> None:
        self.platform.cancel(call_of("rehearse", self.tell), list(self.started.nodes))


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
