# SPDX-License-Identifier: Apache-2.0
"""Starts and watches runs on clusters, in the name of the stack's people."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from components.aws_dl1.client.archives import newest_code
from components.aws_dl1.client.runs import AwsRunPlatform
from components.aws_dl1.client.status import Looker
from components.aws_dl1.local.calls import ask
from components.aws_dl1.plan import AwsDl1Plan, AwsJobPlan
from components.aws_dl1.run_inputs import run_inputs
from components.plan.model import RunPlan
from components.platform.calls import Tell, call_of
from components.platform.errors import ProviderError
from components.platform.rehearsed_runs import Answers, LookedAt, People, StartedRun, start_run
from components.platform.status import WantedRuns
from components.s3.session import Session
from schemas.model import Secret


def answers(outputs: Mapping[str, Any]) -> Answers:
    """What the placeholders of AWS stand for, now that the stack is up."""
    return Answers({"registry": str(outputs["imagePushAddress"]), "bucket": str(outputs["bucketUri"])})


def keep_secrets(deployer: Session, plan: AwsDl1Plan) -> None:
    """The secret variables of runs, which `up` keeps for nodes when it starts them."""
    for job in plan.jobs.values():
        for run in job.runs.values():
            if not _has_secrets(run):
                continue
            # It needs Pulumi, which takes seconds to import.
            from components.aws_dl1.secrets import secret_variables

            text = secret_variables(run) or "{}"
            put = partial(deployer.client("secretsmanager").create_secret, Name=_secret(job, run), SecretString=text)
            ask(_quietly, f"Keep the secret variables of {job.name}/{run.name}", put)


def _quietly(line: str) -> None:
    """A cloud that was just made is busy with nothing else."""


def _has_secrets(run: RunPlan) -> bool:
    return any(isinstance(value, Secret) for node in run.nodes for value in node.environment.values())


def _secret(job: AwsJobPlan, run: RunPlan) -> str:
    return f"{job.cluster.name}/runs/{run.name}"


def start(
    who: People, plan: AwsDl1Plan, job: AwsJobPlan, run: RunPlan, outputs: Mapping[str, Any], answers: Answers,
    tell: Tell,
) -> StartedRun:  # fmt: skip
    where = {
        "bucket": outputs["bucket"],
        "logGroup": outputs.get("logGroup"),
        "secret": _secret(job, run) if _has_secrets(run) else None,
        "code": _code(who, job, str(outputs["bucket"]), tell),
    }
    inputs = run_inputs(plan, job, run, where, answers)
    return start_run(who, AwsRunPlatform(who.session), plan, job, run, inputs, tell)


def _code(who: People, job: AwsJobPlan, bucket: str, tell: Tell) -> str | None:
    try:
        return newest_code(who.session, call_of("rehearse", tell), bucket, job.called)
    except ProviderError:
        return None  # the start says why these people may not look into the bucket


def watch(who: People, plan: AwsDl1Plan, started: StartedRun, tell: Tell) -> LookedAt:
    wanted = WantedRuns(plan.stack, started.job.name, started.run.name)
    looker = Looker(who.session, call_of("rehearse", tell), plan.bucket.name, wanted)
    return LookedAt(AwsRunPlatform(who.session), looker, started, tell)
