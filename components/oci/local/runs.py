# SPDX-License-Identifier: Apache-2.0
"""Starts and watches job runs of OCI Data Science, in the name of the stack's people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.oci.client.runs import OciRunPlatform
from components.oci.client.status import Looker
from components.oci.plan import OciPlan
from components.oci.run_inputs import Where, run_inputs
from components.plan.model import JobPlan, RunPlan
from components.platform.calls import Tell, call_of
from components.platform.local_cloud import LocalCloud
from components.platform.rehearsed_runs import Answers, LookedAt, People, StartedRun, start_run
from components.platform.states import Row
from components.platform.status import WantedRuns


def answers(cloud: LocalCloud, outputs: Mapping[str, Any], rows: Sequence[Row]) -> Answers:
    """What the placeholders of OCI stand for, now that the stack is up."""
    values = {
        "namespace": cloud.namespace,
        "registry": str(outputs["imagePushAddress"]),
        "bucket": str(outputs["bucketUri"]),
        **{f"secret.{name}": ocid for name, ocid in _secrets(rows).items()},
    }
    return Answers(values)


def _secrets(rows: Sequence[Row]) -> dict[str, str]:
    """OCIDs of the stack's vault secrets, by the names that `${secret.…}` uses."""
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
