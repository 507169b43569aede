# SPDX-License-Identifier: Apache-2.0
"""The inputs of a run resource. `pulumi up` starts runs with them, and so does a rehearsal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from components.aws_dl1.plan import AwsDl1Plan, AwsJobPlan
from components.plan.model import NodePlan, RunPlan
from schemas.model import EnvValue, Secret

# The launcher, which ships alone, knows it by the same name (launcher/aws_dl1/host_nic.py).
HOST_NIC_VARIABLE = "TRAINYARD_HOST_NIC"


class RunFiller(Protocol):
    """Fills in the references that a plan leaves to the platform: with values, or with Pulumi's outputs."""

    def fill(self, text: str) -> Any: ...

    def environment(self, values: Mapping[str, EnvValue]) -> Mapping[str, Any]: ...

    def document(self, value: Mapping[str, Any]) -> Any: ...


def run_inputs(
    plan: AwsDl1Plan, job: AwsJobPlan, run: RunPlan, where: Mapping[str, Any], filler: RunFiller
) -> dict[str, Any]:
    """`where`: what only the deployment knows: bucket, logGroup, code, secret and secretVersion. None: there is none.

    The secret's version is no part of the cluster: runs do not stand on it, so another one ends no tries.
    """
    version = {"secretVersion": where["secretVersion"]} if where.get("secretVersion") is not None else {}
    where = {key: value for key, value in where.items() if key != "secretVersion"}
    cluster = {"job": job.cluster.key, "region": plan.region, "stack": plan.stack, **where}
    return {
        "platform": plan.platform,
        **version,
        "cluster": {key: value for key, value in cluster.items() if value is not None},
        "displayName": run.display_name,
        "tags": {**plan.tags, "job": job.name, "run": run.name},
        "nodes": [_node(node, filler, job) for node in run.nodes],
        "image": filler.fill(job.image),
        "maximumRuntimeMinutes": job.maximum_runtime_minutes,
        "until": run.until,
        "attempt": run.attempt,
    }


def _node(node: NodePlan, filler: RunFiller, job: AwsJobPlan) -> dict[str, Any]:
    # Secrets are not here: nodes read them by their role when the run begins.
    plain = {name: value for name, value in node.environment.items() if not isinstance(value, Secret)}
    # Only what is not usual is written: another environment starts a run again.
    forced = {HOST_NIC_VARIABLE: "host-memory"} if job.cluster.host_memory else {}
    environment = {**forced, **filler.environment(plain), "TRAINYARD_LAUNCH": filler.document(node.launch)}
    return {"name": node.name, "role": node.role, "rank": node.rank, "environment": environment}
