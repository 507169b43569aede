# SPDX-License-Identifier: Apache-2.0
"""The inputs of a run resource. `pulumi up` starts runs with them, and so does a rehearsal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from catalog.reason_tags import LAUNCH
from components.oci.plan import OciPlan
from components.plan.model import JobPlan, NodePlan, RunPlan
from schemas.model import EnvValue

# The most characters that OCI accepts as a tag's value.
LONGEST_TAG = 256


class Filler(Protocol):
    """Fills in the references that a plan leaves open: with values, or with Pulumi's outputs."""

    def environment(self, values: Mapping[str, EnvValue]) -> Mapping[str, Any]: ...

    def document(self, value: Mapping[str, Any]) -> Any: ...


@dataclass(frozen=True)
class Where:
    """The place of a run: OCIDs, or Pulumi's outputs that become OCIDs."""

    job: Any
    project: Any
    image: Any
    log_group: Any
    log: Any


def job_tags(plan: OciPlan, job: JobPlan) -> dict[str, str]:
    return {**plan.tags, "job": job.name}


def launch_tags(job: JobPlan) -> dict[str, str]:
    """A tag for a job without runs: how many nodes a run of it has, and their ports, as in `nodes=4

    ports=29400,29500-29563`. People start its runs by other means, and policy packs see only the job.
    """
    if job.runs:
        return {}
    ports = dict.fromkeys("all" if one is None else str(one) for role in job.roles for one in role.ports.values())
    tag = f"nodes={job.nodes} ports={','.join(ports)}"
    return {LAUNCH: tag} if len(tag) <= LONGEST_TAG else {}


def make_run_inputs(plan: OciPlan, job: JobPlan, run: RunPlan, where: Where, filler: Filler) -> dict[str, Any]:
    reservation = plan.jobs[job.name].capacity_reservation
    return {
        "platform": "oci",
        "job": where.job,
        "project": where.project,
        "compartment": plan.compartment,
        "displayName": run.display_name,
        "tags": {**job_tags(plan, job), "run": run.name},
        "layout": job.layout,
        "nodes": [_node_input(job, node, filler) for node in run.nodes],
        "image": where.image,
        "maximumRuntimeMinutes": job.maximum_runtime_minutes,
        "logGroup": where.log_group,
        "log": where.log,
        # Earlier releases had no such input. It is left out if it is empty, so their runs do not start again.
        **({"capacityReservation": reservation} if reservation else {}),
        **run.turn_inputs,
        "expects": job.expects,
        "until": run.until,
        "attempt": run.attempt,
    }


def _node_input(job: JobPlan, node: NodePlan, filler: Filler) -> dict[str, Any]:
    environment = {**filler.environment(node.environment), "TRAINYARD_LAUNCH": filler.document(node.launch)}
    described: dict[str, Any] = {"name": node.name, "role": node.role, "rank": node.rank, "environment": environment}
    if job.layout == "node-groups":
        described |= {"replicas": node.replicas, "minimumSuccess": node.minimum_success}
    return described
