# SPDX-License-Identifier: Apache-2.0
"""Tries on AWS DL1: tickets for the job's cluster, beside those of the stack's runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from components.aws_dl1.client.archives import newest_code
from components.aws_dl1.client.caller import session_of_caller
from components.aws_dl1.client.deployed import changes_of, find_deployed, refuse_new_secrets
from components.aws_dl1.client.filling import PlanFiller, environment_of, overlay_with, without_secrets
from components.aws_dl1.client.queue import Queue
from components.aws_dl1.client.runs import AwsRunPlatform
from components.aws_dl1.client.tickets import Cluster, Ticket, described_inputs
from components.aws_dl1.plan import AwsDl1Plan, AwsJobPlan, aws_dl1_job, aws_dl1_plan
from components.aws_dl1.run_inputs import run_inputs
from components.platform.calls import Call, call_of
from components.platform.errors import ProviderError
from components.platform.runs import NodeRun, RunSpec
from components.platform.starting_tries import spec_of_try
from components.platform.tries import PlannedTry, ReadyTry, TryError, TryQuestion
from components.platform.values import Properties
from components.s3.calls import ACCESS_CODES, code_of
from components.s3.session import Session

T = TypeVar("T")


@dataclass
class AwsTries:
    """`components.platform.tries.TryPlatform`."""

    session: Session
    call: Call
    question: TryQuestion
    # One cloud, real or local, has every region.
    region: str | None = None

    @cached_property
    def _runs(self) -> AwsRunPlatform:
        return AwsRunPlatform(self.session)

    def prepare(self, planned: PlannedTry) -> ReadyTry:
        plan, job = aws_dl1_plan(planned.plan), aws_dl1_job(planned.job)
        refuse_new_secrets(planned)
        queue = self._queue(plan, job)
        deployed = self._allowed(lambda: find_deployed(queue, planned))
        values = self._values(plan, queue.cluster.bucket)
        inputs = _repeated(planned, deployed, values) if deployed else self._from_plan(planned, plan, job, values)
        folder = self.question.judged.folder
        return ReadyTry(planned, inputs, tuple(changes_of(planned, job, deployed, folder)))

    def start(self, ready: ReadyTry) -> Sequence[NodeRun]:
        spec, made = spec_of_try(ready), list[NodeRun]()
        try:
            self._allowed(lambda: made.extend(self._runs.ensure(self.call, spec, ())))
        except BaseException:
            self._end(spec)
            raise
        return made

    def _end(self, spec: RunSpec) -> None:
        """Ends what was put into the queue: nobody would know of it, and it would cost money."""
        queue = self._runs.queue(self.call, Cluster.of(spec.own["cluster"]))
        for ticket in queue.tickets():
            if ticket.fingerprint == spec.fingerprint:
                self._runs.cancel(self.call, [NodeRun(name, ticket.run_id(name), "") for name in ticket.node_names])

    def _queue(self, plan: AwsDl1Plan, job: AwsJobPlan) -> Queue:
        if "bucket" in plan.taken and not self.question.place:
            raise TryError("the bucket belongs to the stack under `uses`: name it with --place")
        bucket = self.question.place or plan.bucket.name
        return self._runs.queue(self.call, Cluster(bucket, job.cluster.key, plan.region, plan.stack))

    def _values(self, plan: AwsDl1Plan, bucket: str) -> dict[str, str]:
        """References that can be answered without the stack's state."""
        values = {"bucket": f"s3://{bucket}"}
        if "registry" not in plan.taken:
            host = f"{self._allowed(lambda: self.session.account)}.dkr.ecr.{plan.region}.amazonaws.com"
            values["registry"] = f"{host}/{plan.registry.repository}"
        return values

    def _from_plan(self, planned: PlannedTry, plan: AwsDl1Plan, job: AwsJobPlan, values: dict[str, str]) -> Properties:
        group = plan.logs.group_name if plan.logs.enabled and "logs" not in plan.taken else None
        bucket = values["bucket"].removeprefix("s3://")
        code = (
            self._allowed(lambda: newest_code(self.session, self.call, bucket, job.called))
            if job.code and job.code.folder
            else None
        )
        where = {"bucket": bucket, "logGroup": group, "code": code}
        return {**run_inputs(plan, job, planned.run, where, PlanFiller(values)), "until": "accepted"}

    def _allowed(self, ask: Callable[[], T]) -> T:
        """What `ask` gives. A refusal for lack of access says which statements give it."""
        try:
            return ask()
        except ProviderError as error:
            if code_of(error.__cause__) not in ACCESS_CODES:
                raise
            raise TryError(f"{error.cause}\n{error.remedy}") from error


def _repeated(planned: PlannedTry, deployed: Ticket, values: dict[str, str]) -> Properties:
    """The deployed run, with the difference that the try makes."""
    like = {node.name: without_secrets(node) for node in planned.like.nodes} if planned.like else {}
    own = {node.name: without_secrets(node) for node in planned.run.nodes}
    inputs, nodes = described_inputs(deployed), []
    for node in inputs["nodes"]:
        if node["name"] not in own or node["name"] not in like:
            raise TryError(f"the node {node['name']} is deployed, but no longer in the stack file")
        made = overlay_with(values).apply(environment_of(node), like[node["name"]], own[node["name"]])
        nodes.append({**node, "environment": made})
    tags = {**inputs.get("tags", {}), "run": planned.run.name}
    shown = {"displayName": planned.run.display_name, "tags": tags}
    return {**inputs, **shown, "nodes": nodes, "attempt": 1, "until": "accepted"}


def make(question: TryQuestion) -> AwsTries:
    session = session_of_caller(question.config, question.cloud, question.profile)
    return AwsTries(session, call_of("run", question.tell), question)
