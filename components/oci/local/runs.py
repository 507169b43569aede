# SPDX-License-Identifier: Apache-2.0
"""Starts and watches job runs of OCI Data Science, in the name of the stack's people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from components.oci.client.runs import OciRunPlatform
from components.oci.client.status import Looker
from components.oci.plan import OciPlan
from components.oci.run_inputs import Where, run_inputs
from components.plan.model import JobPlan, RunPlan
from components.platform.calls import Tell, call_of
from components.platform.status import WantedRuns
from localcloud.control import Cloud
from localstacks.place import Place
from rehearsing.people import People
from rehearsing.runs import Answers, LookedAt, StartedRun, start_run


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
    inputs = run_inputs(plan, job, run, where, answers)
    return start_run(who, OciRunPlatform(who.session), plan, job, run, inputs, tell)


def watch(who: People, plan: OciPlan, started: StartedRun, tell: Tell) -> LookedAt:
    wanted = WantedRuns(plan.stack, started.job.name, started.run.name)
    looker = Looker(who.session, call_of("rehearse", tell), plan.compartment or "", wanted)
    return LookedAt(OciRunPlatform(who.session), looker, started, tell)
