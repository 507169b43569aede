# SPDX-License-Identifier: Apache-2.0
"""The outputs of a stack: everything that people or other stacks need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.oci.context import Context
from components.oci.jobs import Job, JobPlace
from components.oci.network import Network
from components.oci.plan import OciNetworkPlan
from components.oci.registry import registry_host
from components.oci.rules import security_rules

CONSOLE = "https://cloud.oracle.com"


def outputs(here: Context, network: Network | None, place: JobPlace, jobs: Mapping[str, Job]) -> dict[str, Any]:
    plan = here.plan
    exported: dict[str, Any] = {
        "bucket": here.bucket,
        "bucketUri": here.bucket_uri,
        "imagePushAddress": here.registry,
        # Users fill in their name and auth token: neither belongs in a stack's state.
        "dockerLogin": here.namespace.apply(
            lambda namespace: f"docker login -u '{namespace}/<user>' {registry_host(plan.region)}"
        ),
        "subnetId": place.subnet,
        "projectId": place.project,
        "logGroupId": place.log_group,
        "logId": place.log,
        "runsGroup": here.runs_group,
        # The owner of an existing network must open these ports.
        "portsOpen" if network else "portsNeeded": _ports(plan.network),
        "jobs": {
            name: {
                "id": job.job_id,
                "console": job.job_id.apply(lambda ocid: f"{CONSOLE}/data-science/jobs/{ocid}?region={plan.region}"),
                "runs": {key: {"state": run.state, "nodes": run.node_runs} for key, run in job.runs.items()},
            }
            for name, job in jobs.items()
        },
        "console": {
            "bucket": pulumi.Output.concat(
                f"{CONSOLE}/object-storage/buckets/",
                here.namespace,
                "/",
                here.bucket,
                f"/objects?region={plan.region}",
            ),
            "project": pulumi.Output.from_input(place.project).apply(
                lambda ocid: f"{CONSOLE}/data-science/projects/{ocid}?region={plan.region}"
            ),
        },
    }
    if network is not None:
        exported |= {"vcnId": network.vcn_id, "subnetCidr": plan.network.subnet_cidr}
    return {name: value for name, value in exported.items() if value is not None}


def _ports(network: OciNetworkPlan) -> list[str]:
    return [str(rule.ports or "all") for rule in security_rules(network).ingress]
