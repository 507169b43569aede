# SPDX-License-Identifier: Apache-2.0
"""The deployed run that a try is like: the newest ticket of that run in the queue of its cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from components.aws_dl1.archives import archive_name
from components.aws_dl1.client.filling import OVERLAY, environment_of, without_secrets
from components.aws_dl1.client.queue import Queue
from components.aws_dl1.client.tickets import Ticket
from components.aws_dl1.plan import AwsJobPlan
from components.platform.run_platform import liked_by
from components.platform.tries import PlannedTry, TryError
from schemas.model import Secret


def find_deployed(queue: Queue, planned: PlannedTry) -> Ticket | None:
    """None if the job has no runs in the stack file: there is nothing to repeat."""
    stack, job = planned.plan.stack, planned.job.name
    tickets = [one for one in queue.tickets() if one.tags.get("stack") == stack]
    if any(one.tags.get("run") == planned.run.name for one in tickets):
        # It would share checkpoints and the line in `trainyard runs`.
        raise TryError(f"there was a try {planned.title} already: give this one another --name, or none")
    if planned.like is None:
        return None
    name = planned.like.name
    own = [one for one in tickets if one.tags.get("run") == name and liked_by(one.fingerprint) is None]
    if not own:
        raise TryError(
            f"the run {job}/{name} is not deployed in {queue.cluster.bucket}: `up` of the stack starts it first"
        )
    return own[0]


def changes_of(planned: PlannedTry, job: AwsJobPlan, deployed: Ticket | None, folder: Path) -> Iterator[str]:
    """Keys of the job in the stack file that say something else than what is deployed, each once."""
    if deployed is not None and planned.like is not None:
        yield from dict.fromkeys(_differences(planned, job, deployed, folder))


def _differences(planned: PlannedTry, job: AwsJobPlan, deployed: Ticket, folder: Path) -> Iterator[str]:
    if job.code and job.code.folder and deployed.cluster.code:
        name = archive_name((folder / job.code.folder).resolve(), job.called)
        if deployed.cluster.code.rpartition("/")[2] != name:
            yield "code"
    if not OVERLAY.fits(job.image, deployed.text("image")):
        yield "image"
    if job.maximum_runtime_minutes != deployed.content.get("maximumMinutes"):
        yield "maximumRuntimeMinutes"
    like = {node.name: node for node in planned.like.nodes} if planned.like else {}
    if set(deployed.node_names) != set(like):
        yield "roles"
    for node in deployed.nodes:
        if node["name"] in like:
            yield from OVERLAY.differences(environment_of(node), without_secrets(like[node["name"]]))


def refuse_new_secrets(planned: PlannedTry) -> None:
    """A ticket is no place for secrets, and the secret of the run that the try is like has other ones."""
    like = {node.name: node.environment for node in planned.like.nodes} if planned.like else {}
    for node in planned.run.nodes:
        for name, value in node.environment.items():
            if isinstance(value, Secret) and like.get(node.name, {}).get(name) != value:
                raise TryError(
                    f"`{name}` is a secret, which a try cannot bring: add it to a run of the stack file, and `up` "
                    "keeps it where only the nodes read it"
                )
