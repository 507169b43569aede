# SPDX-License-Identifier: Apache-2.0
"""Starts and watches runs on clusters, in the name of the stack's people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.aws_dl1.plan import AwsDl1Plan, AwsJobPlan
from components.aws_dl1.run_inputs import run_inputs
from components.plan.model import RunPlan
from provider.aws_dl1.archives import newest_code
from provider.aws_dl1.platform import AwsRunPlatform
from provider.aws_dl1.session import Session
from provider.base.asking import Tell, call_of
from provider.base.errors import ProviderError
from provider.runs.check import with_defaults
from provider.runs.model import NodeRun, run_spec
from rehearsing.people import People
from rehearsing.runs import Answers, StartedRun
from runstatus.aws_dl1.looker import Looker
from runstatus.seen import RunStatus, WantedRuns
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

            text = secret_variables(job, run) or "{}"
            deployer.client("secretsmanager").create_secret(Name=_secret(job, run), SecretString=text)


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
    inputs = with_defaults(run_inputs(plan, job, run, where, answers))
    spec = run_spec(f"rehearsal of {plan.stack}: {job.name}/{run.name}", inputs)
    spec = replace(spec, timeouts=replace(spec.timeouts, access=0.0))
    made: list[NodeRun] = []
    try:
        made.extend(AwsRunPlatform(who.session).ensure(call_of("rehearse", tell), spec, ()))
    except ProviderError as refused:
        return StartedRun(job, run, tuple(made), f"{who.words} could not start it: {refused.cause}")
    return StartedRun(job, run, tuple(made))


def _code(who: People, job: AwsJobPlan, bucket: str, tell: Tell) -> str | None:
    try:
        return newest_code(who.session, call_of("rehearse", tell), bucket, job.called)
    except ProviderError:
        return None  # the start says why these people may not look into the bucket


@dataclass
class AwsRunWatch:
    """`rehearsing.runs.RunWatch`."""

    who: People
    started: StartedRun
    looker: Looker

    def look(self) -> RunStatus | None:
        runs = self.looker.look()
        return runs[0] if runs else None

    def cancel(self) -> None:
        AwsRunPlatform(self.who.session).cancel(self.looker.call, list(self.started.nodes))


def watch(who: People, plan: AwsDl1Plan, started: StartedRun, tell: Tell) -> AwsRunWatch:
    wanted = WantedRuns(plan.stack, started.job.name, started.run.name)
    return AwsRunWatch(who, started, Looker(who.session, call_of("rehearse", tell), plan.bucket.name, wanted))
