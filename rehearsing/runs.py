# SPDX-License-Identifier: Apache-2.0
"""Starts the runs of a rehearsal in the name of its people, and watches them to their end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.oci.run_inputs import Where, run_inputs
from components.plan.model import JobPlan, Plan, RunPlan
from components.plan.naming import expand
from launcher.escaping import terminal
from localcloud.control import Cloud
from provider.base.asking import Tell, call_of
from provider.base.errors import ProviderError
from provider.oci.platform import OciPlatform
from provider.runs.check import with_defaults
from provider.runs.model import NodeRun, run_spec
from rehearsing.people import People
from runstatus.oci.looker import Looker, Wanted
from runstatus.seen import RunSeen
from runstatus.words import progress
from schemas.model import EnvValue, Secret

_SECONDS_BETWEEN_LOOKS = 0.5


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

    @classmethod
    def of(cls, cloud: Cloud, outputs: Mapping[str, Any], secrets: Mapping[str, str]) -> Answers:
        known = {
            "namespace": cloud.namespace,
            "registry": str(outputs["imagePushAddress"]),
            "bucket": str(outputs["bucketUri"]),
            **{f"secret.{name}": ocid for name, ocid in secrets.items()},
        }
        return cls(known)


@dataclass(frozen=True)
class Started:
    """A run that was asked for; `refused` says why it did not start."""

    job: JobPlan
    run: RunPlan
    nodes: tuple[NodeRun, ...] = ()
    refused: str = ""


def start(
    who: People, plan: Plan, job: JobPlan, run: RunPlan, outputs: Mapping[str, Any], answers: Answers, tell: Tell
) -> Started:
    where = Where(
        outputs["jobs"][job.name]["id"], outputs["projectId"], None, outputs.get("logGroupId"), outputs.get("logId")
    )
    inputs = with_defaults(run_inputs(plan, job, run, where, answers))
    spec = run_spec(f"rehearsal of {plan.stack}: {job.name}/{run.name}", inputs)
    spec = replace(spec, timeouts=replace(spec.timeouts, access=0.0))
    made: list[NodeRun] = []
    try:
        made.extend(OciPlatform(who.session).ensure(call_of("rehearse", tell), spec, ()))
    except ProviderError as refused:
        return Started(job, run, tuple(made), f"{who.words} could not start it: {refused.cause}")
    return Started(job, run, tuple(made))


def watched(
    who: People, plan: Plan, started: Started, minutes: float, tell: Tell, enough: Callable[[], bool] = lambda: False
) -> tuple[RunSeen | None, str]:
    """The run at its end; if it lasts too long (or `enough` was seen) it is cancelled, and why is told."""
    wanted = Wanted(plan.compartment or "", plan.stack, started.job.name, started.run.name)
    looker = Looker(who.session, call_of("rehearse", tell), wanted)
    deadline, said, why = time.monotonic() + minutes * 60, Said(tell), ""
    while True:
        found = looker.look()
        run = found[0] if found else None
        if run is not None:
            said.tell(run)
        if run is None or run.over:
            return run, why
        late = time.monotonic() > deadline
        if not why and (late or started.refused or enough()):
            why = f"it had not ended after {minutes:g} minutes and was cancelled" if late else "it was cancelled"
            OciPlatform(who.session).cancel(looker.call, list(started.nodes))
        looker.call.stop.wait(_SECONDS_BETWEEN_LOOKS)


class Said:
    """Progress on stderr: a line for each change of a rank, none for a rank that goes on."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._known: dict[int, str] = {}

    def tell(self, run: RunSeen) -> None:
        for node in run.nodes:
            now = ": ".join(filter(None, (node.state, progress((node.told or {}).get("progress")), node.run.details)))
            if self._known.get(node.rank) != now:
                self._known[node.rank] = now
                self._tell(terminal(f"  {run.title} rank {node.rank} {node.run.name}: {now}"))
