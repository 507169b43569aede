# SPDX-License-Identifier: Apache-2.0
"""Starts and watches job runs of OCI Data Science, in the name of the stack's people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.oci.plan import OciPlan
from components.oci.run_inputs import Where, run_inputs
from components.plan.model import JobPlan, RunPlan
from localcloud.control import Cloud
from localstacks.place import Place
from provider.base.asking import Tell, call_of
from provider.base.errors import ProviderError
from provider.oci.platform import OciRunPlatform
from provider.runs.check import with_defaults
from provider.runs.model import NodeRun, run_spec
from rehearsing.people import People
from rehearsing.runs import Answers, StartedRun
from runstatus.oci.looker import Looker
from runstatus.seen import RunStatus, WantedRuns


def answers(cloud: Cloud, outputs: Mapping[str, Any], place: Place) -> Answers:
    """What the placeholders of OCI stand for, now that the stack is up."""
    values = {
        "namespace": cloud.namespace,
        "registry": str(outputs["imagePushAddress"]),
        "bucket": str(outputs["bucketUri"]),
        **{f"secret.{name}": ocid for name, ocid in _secrets(place).items()},
    }
    return Answers(values)


def _secrets(place: Place) -> dict[str, str]:
    """OCIDs of the stack's vault secrets, by the names that `${secret.…}` uses."""
    rows = json.loads(place.state("export", "--stack", place.stack))["deployment"].get("resources") or ()
    return {
        row["urn"].rpartition("::secret-")[2]: row["id"] for row in rows if row["type"] == "oci:Vault/secret:Secret"
    }


def start(
    who: People, plan: OciPlan, job: JobPlan, run: RunPlan, outputs: Mapping[str, Any], answers: Answers, tell: Tell
) -> StartedRun:
    where = Where(
        outputs["jobs"][job.name]["id"], outputs["projectId"], None, outputs.get("logGroupId"), outputs.get("logId")
    )
    inputs = with_defaults(run_inputs(plan, job, run, where, answers))
    spec = run_spec(f"rehearsal of {plan.stack}: {job.name}/{run.name}", inputs)
    spec = replace(spec, timeouts=replace(spec.timeouts, access=0.0))
    made: list[NodeRun] = []
    try:
        made.extend(OciRunPlatform(who.session).ensure(call_of("rehearse", tell), spec, ()))
    except ProviderError as refused:
        return StartedRun(job, run, tuple(made), f"{who.words} could not start it: {refused.cause}")
    return StartedRun(job, run, tuple(made))


@dataclass
class OciRunWatch:
    """`rehearsing.runs.RunWatch`."""

    who: People
    started: StartedRun
    looker: Looker

    def look(self) -> RunStatus | None:
        runs = self.looker.look()
        return runs[0] if runs else None

    def cancel(self) -> None:
        OciRunPlatform(self.who.session).cancel(self.looker.call, list(self.started.nodes))


def watch(who: People, plan: OciPlan, started: StartedRun, tell: Tell) -> OciRunWatch:
    wanted = WantedRuns(plan.stack, started.job.name, started.run.name)
    return OciRunWatch(who, started, Looker(who.session, call_of("rehearse", tell), plan.compartment or "", wanted))
