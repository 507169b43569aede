# SPDX-License-Identifier: Apache-2.0
"""Makes a plan's OCI resources, in the order of their dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pulumi_oci as oci

from components.messages import warn_user
from components.oci.plan import TAKEN, OciPlan, registry_host
from components.oci.resources.access import Access, AccessArgs
from components.oci.resources.context import Context, make_oci_sdk_lazy, namespace_output, provider_credentials
from components.oci.resources.existing import find_departures, resolve_existing
from components.oci.resources.jobs import Job, JobArgs, JobPlace, build_artifact, compute_targets
from components.oci.resources.network import Network, NetworkArgs
from components.oci.resources.refusals import find_refusals
from components.oci.resources.storage import Logs, LogsArgs, Storage, StorageArgs, make_flow_log
from components.oci.rules import security_rules
from components.outputs import Borrowed, Recorded, recorded_resources
from components.plan.platform import Deployment
from components.runs import RunProvider, code_artifact
from components.values.protocols import TCP, protocol_name
from components.values.security_rules import port_range_text
from schemas.findings import dotted_path

CONSOLE = "https://cloud.oracle.com"
# Settings of the `oci` provider that ours reads under its own names.
RUN_SETTINGS = {"configFileProfile": "profile"}


def stack_outputs(here: Context, network: Network | None, place: JobPlace, jobs: Mapping[str, Job]) -> dict[str, Any]:
    plan = here.plan
    rules = security_rules(plan.network).ingress
    exported: dict[str, Any] = {
        "bucket": here.bucket,
        "bucketUri": here.bucket_uri,
        "imagePushAddress": here.registry,
        # Users fill in their name and auth token, because neither belongs in a stack's state.
        "dockerLogin": here.namespace.apply(
            lambda namespace: f"docker login -u '{namespace}/<user>' {registry_host(plan.region)}"
        ),
        "subnetId": place.subnet,
        "projectId": place.project,
        "logGroupId": place.log_group,
        "logId": place.log,
        "runsGroup": here.runs_group,
        # The owner of an existing network must open these ports.
        "portsOpen" if network else "portsNeeded": [
            f"{'' if rule.protocol == TCP else f'{protocol_name(rule.protocol)} '}{port_range_text(rule.ports, 'all')}"
            for rule in rules
        ],
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
                f"{CONSOLE}/object-storage/buckets/", here.namespace, "/", here.bucket, f"/objects?region={plan.region}"
            ),
            "project": pulumi.Output.from_input(place.project).apply(
                lambda ocid: f"{CONSOLE}/data-science/projects/{ocid}?region={plan.region}"
            ),
        },
    }
    if network is not None:
        exported |= {"vcnId": network.vcn_id, "subnetCidr": plan.network.subnet_cidr}
    return {name: value for name, value in exported.items() if value is not None}


def deploy_to_oci(plan: OciPlan, folder: Path) -> dict[str, Any]:
    """Makes every resource of the plan and returns the stack's outputs. Paths in the plan start at `folder`."""
    make_oci_sdk_lazy()
    plan = resolve_existing(plan)
    for wrong in (*find_refusals(plan, Recorded(recorded_resources())), *find_departures(plan)):
        warn_user(f"{dotted_path(wrong.path)}: {wrong.message}\n  {wrong.remedy}")
    borrowed = Borrowed(plan, TAKEN)
    prefix = f"{plan.team}-{plan.environment}"
    namespace = namespace_output()
    access = (Access("access", AccessArgs(plan, prefix, plan.tags)),) if plan.access.create else ()
    parts = plan.bucket, plan.registry, plan.vault
    key_access = access if plan.bucket.key else ()
    storage = Storage("storage", StorageArgs(*parts, plan.compartment or "", namespace, prefix, plan.tags, key_access))
    here = Context(plan, namespace, storage.secret_ids, borrowed)
    network = None
    if plan.network.create:
        network = Network("network", NetworkArgs(plan.network, plan.compartment or "", prefix, plan.tags))
    project = borrowed.get("project", "projectId") or plan.project.project
    if project is None:
        project = oci.datascience.Project(
            "project",
            compartment_id=plan.compartment,
            display_name=plan.project.name,
            description=f"Distributed training of {plan.team}, {plan.environment}",
            freeform_tags=dict(plan.tags),
        ).id
    place = JobPlace(
        project=project,
        subnet=network.subnet_id if network else borrowed.get("network", "subnetId") or plan.network.subnet or "",
        **_log_settings(plan, borrowed),
        compute_targets=compute_targets(plan),
    )
    # Made before the runs, so that it records their first packets, too.
    flow_logs: tuple[oci.logging.Log, ...] = ()
    if isinstance(plan.network.flow_log, str) and place.log_group is not None:
        flow_logs = (make_flow_log(plan, place.log_group, place.subnet),)
    jobs: dict[str, Job] = {}
    if plan.jobs:
        named = provider_credentials()
        settings = {ours: named[theirs] for theirs, ours in RUN_SETTINGS.items() if theirs in named}
        runs, after = RunProvider("runs", {"region": plan.region, **settings}), (storage, *access, *flow_logs)
        for name, job in plan.jobs.items():
            artifact = code_artifact(plan, job, folder, build_artifact)
            jobs[name] = Job(name, JobArgs(job, here, place, artifact, runs, after))
    # Stacks that use this one's network refer to its flow log, others to the compute targets that they share.
    made: dict[str, Any] = {"flowLogGroupId": place.log_group, "flowLogId": flow_logs[0].id} if flow_logs else {}
    if place.compute_targets:
        made["computeTargetIds"] = dict(place.compute_targets)
    return {**stack_outputs(here, network, place, jobs), **made}


def _log_settings(plan: OciPlan, borrowed: Borrowed) -> dict[str, Any]:
    if not plan.logs.enabled:
        return {"log_group": None, "log": None}
    if plan.logs.create:
        logs = Logs("logs", LogsArgs(plan.logs, plan.compartment or "", plan.tags))
        return {"log_group": logs.group_id, "log": logs.log_id}
    return {
        "log_group": borrowed.get("logs", "logGroupId") or plan.logs.group,
        "log": borrowed.get("logs", "logId") or plan.logs.log,
    }


DEPLOYMENT = Deployment(deploy_to_oci)
