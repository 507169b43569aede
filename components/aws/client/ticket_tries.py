# SPDX-License-Identifier: Apache-2.0
"""The deployed run that a try repeats: the newest ticket of that run in its cluster's queue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from components.aws.client.ticket_queue import Queue
from components.aws.client.tickets import Cluster, Ticket, inputs_of_ticket
from components.aws.plan import AwsJobPlan, aws_dl1_job, aws_dl1_plan
from components.aws.run_inputs import archive_name, aws_run_inputs
from components.plan.model import NodePlan, expand_references
from components.platform.calls import Call
from components.platform.runs import liked_by
from components.platform.tries import (
    Overlay,
    PlanFiller,
    PlannedTry,
    ReadyTry,
    TryError,
    refuse_taken_name,
    repeat_deployed_run,
)
from components.s3 import Session, list_aws_pages
from schemas.model import Secret

# References of a plan that only AWS fills in.
_OPEN_TEXT = re.compile(r"\$\{[^}]*\}")
_CODE = ".trainyard/code/"


def ticket_overlay(values: Mapping[str, str]) -> Overlay:
    return Overlay(_OPEN_TEXT, lambda text: expand_references(text, values))


# It has no values, because it is only used to compare.
OVERLAY = ticket_overlay({})


def environment_of(node: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a deployed node. The ticket is untrusted: anybody with access to the bucket may have written
    it."""
    values = node.get("environment")
    return {str(name): str(value) for name, value in values.items()} if isinstance(values, Mapping) else {}


def without_secrets(node: NodePlan) -> NodePlan:
    """Secret variables are in the run's secret, never in a ticket."""
    plain = {name: value for name, value in node.environment.items() if not isinstance(value, Secret)}
    return replace(node, environment=plain)


def find_deployed_ticket(queue: Queue, planned: PlannedTry) -> Ticket | None:
    """The deployed run to repeat. None if the job has no runs in the stack file."""
    stack, job = planned.plan.stack, planned.job.name
    tickets = [one for one in queue.tickets() if one.tags.get("stack") == stack]
    refuse_taken_name(planned, (one.tags.get("run") for one in tickets))
    if planned.like is None:
        return None
    name = planned.like.name
    own = [one for one in tickets if one.tags.get("run") == name and liked_by(one.fingerprint) is None]
    if not own:
        raise TryError(
            f"the run {job}/{name} is not deployed in {queue.cluster.bucket}: `up` of the stack starts it first"
        )
    return own[0]


def changed_keys_of_ticket(planned: PlannedTry, job: AwsJobPlan, deployed: Ticket | None, folder: Path) -> list[str]:
    """The keys of the job that differ between the stack file and what is deployed, each once."""
    if deployed is None or planned.like is None:
        return []
    changes = []
    if job.code and job.code.folder and deployed.cluster.code:
        name = archive_name((folder / job.code.folder).resolve(), job.called)
        if deployed.cluster.code.rpartition("/")[2] != name:
            changes.append("code")
    if not OVERLAY.fits(job.image, deployed.text("image")):
        changes.append("image")
    if job.maximum_runtime_minutes != deployed.content.get("maximumMinutes"):
        changes.append("maximumRuntimeMinutes")
    like = {node.name: node for node in planned.like.nodes}
    if set(deployed.node_names) != set(like):
        changes.append("roles")
    for node in deployed.nodes:
        if node["name"] in like:
            changes += OVERLAY.differences(environment_of(node), without_secrets(like[node["name"]]))
    return list(dict.fromkeys(changes))


def refuse_new_secrets(planned: PlannedTry) -> None:
    """A try cannot have new secrets: tickets have none, and the secret of the repeated run has only that run's."""
    like = {node.name: node.environment for node in planned.like.nodes} if planned.like else {}
    for node in planned.run.nodes:
        for name, value in node.environment.items():
            if isinstance(value, Secret) and like.get(node.name, {}).get(name) != value:
                raise TryError(
                    f"`{name}` is a secret, which a try cannot bring: add it to a run of the stack file, and `up` "
                    "stores it where only the nodes can read it"
                )


def newest_code(session: Session, call: Call, bucket: str, job: str) -> str | None:
    """The newest archive of a job's code, or None if the job has no code. Older archives stay for runs in the queue."""
    stem = f"{_CODE}{job}-"
    rows = [
        (row["LastModified"], row["Key"])
        for page in list_aws_pages(
            call, "Look for the job's code", session.client("s3"), "list_objects_v2", Bucket=bucket, Prefix=stem
        )
        for row in page.get("Contents", ())
        # Another job's name may begin with this one's.
        if "-" not in row["Key"].removeprefix(stem)
    ]
    return str(max(rows)[1]) if rows else None


def prepare_aws_try(session: Session, known_bucket: str, call: Call, planned: PlannedTry, folder: Path) -> ReadyTry:
    plan, job = aws_dl1_plan(planned.plan), aws_dl1_job(planned.job)
    refuse_new_secrets(planned)
    if "bucket" in plan.taken and not known_bucket:
        raise TryError("the bucket belongs to the stack under `uses`: name it with --place")
    bucket = known_bucket or plan.bucket.name
    queue = Queue(session, call, Cluster(bucket, job.cluster.key, plan.region, plan.stack))
    deployed = find_deployed_ticket(queue, planned)
    # The references that can be filled in without the stack's state.
    values = {"bucket": f"s3://{bucket}"}
    if "registry" not in plan.taken:
        host = f"{session.account}.dkr.ecr.{plan.region}.amazonaws.com"
        values["registry"] = f"{host}/{plan.registry.repository}"
    if deployed is not None:
        before, overlay = inputs_of_ticket(deployed), ticket_overlay(values)
        inputs = repeat_deployed_run(planned, before, overlay, environment_of, without_secrets)
    else:
        group = plan.logs.group_name if plan.logs.enabled and "logs" not in plan.taken else None
        code = newest_code(session, call, bucket, job.called) if job.code and job.code.folder else None
        where = {"bucket": bucket, "logGroup": group, "code": code}
        inputs = {**aws_run_inputs(plan, job, planned.run, where, PlanFiller(values)), "until": "accepted"}
    return ReadyTry(planned, inputs, tuple(changed_keys_of_ticket(planned, job, deployed, folder)))
