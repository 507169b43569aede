# SPDX-License-Identifier: Apache-2.0
"""What `trainyard plan` says in OCI's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from components.oci.plan import ComputeTargetPlan, OciJobPlan, OciPlan
from components.oci.stack import FlowLog
from components.plan.platform import Row, Words
from components.plan.show import made_or_not, name_or_owner
from schemas.names import plural


def words(plan: OciPlan) -> Words:
    return Words(
        place=[("compartment", plan.compartment or ""), ("tenancy", plan.tenancy or "")],
        principals=tuple(_principals(plan)),
        network=(*_network(plan), *_flow_log(plan.network.flow_log)),
        storage=(*_storage(plan), *_targets(plan.compute_targets)),
        jobs={name: tuple(_job(job)) for name, job in plan.jobs.items()},
    )


def _principals(plan: OciPlan) -> Iterator[Row]:
    access = plan.access
    if access.users_group:
        yield "users", f"group {access.users_group}"
    if access.users_dynamic_group:
        new = " (made)" if access.make_notebooks_group else ""
        yield "users", f"dynamic group {access.users_dynamic_group}{new}"
    new = " (made)" if access.make_runs_group and access.create else ""
    yield "runs", name_or_owner(plan, "access", f"dynamic group {access.runs_group}{new}")
    yield "where", "the tenancy" if access.tenancy_wide else "the compartment"


def _network(plan: OciPlan) -> Iterator[Row]:
    network = plan.network
    if not network.create:
        yield "subnet", network.subnet or "of the stack it uses"
        return
    own = "to Oracle's services, and out through NAT" if network.nat else "to Oracle's services only"
    yield ("in VCN", network.vcn) if network.vcn else ("network", network.cidr)
    yield "subnet", network.subnet_cidr
    yield "way out", "where the route table of that VCN leads" if network.vcn else own


def _flow_log(flow_log: str | FlowLog | None) -> Iterator[Row]:
    if isinstance(flow_log, FlowLog):
        yield "flow log", f"{flow_log.log}, not made"
    elif flow_log:
        yield "flow log", f"{flow_log}, made; OCI charges for what a tenancy's logs store beyond 10 GB a month"


def _storage(plan: OciPlan) -> Iterator[Row]:
    logs, project = plan.logs, plan.project
    if logs.enabled:
        made = f"{logs.log_name} in {logs.group_name}, {made_or_not(logs.create)}, {logs.retention_days} days"
        yield "log", made if logs.create else name_or_owner(plan, "logs", f"{logs.log} in {logs.group}")
    yield "project", f"{name_or_owner(plan, 'project', project.project or project.name)}, {made_or_not(project.create)}"
    if plan.vault:
        yield "secrets", f"{', '.join(plan.vault.secrets)} in {plan.vault.vault}"


def _targets(targets: Mapping[str, ComputeTargetPlan]) -> Iterator[Row]:
    for target in targets.values():
        if target.shape is None:
            yield "compute target", f"{target.existing}, not made"
        else:
            machines = f"{target.instances} of {target.shape.name}"
            yield "compute target", f"{target.name}, made: {machines}; OCI charges for them while it exists"


def _job(job: OciJobPlan) -> Iterator[Row]:
    if job.compute_target and job.share:
        gpus = f", {plural(job.share.gpus, 'GPU')}" if job.share.gpus else ""
        asks = f"{job.share.ocpus:g} OCPUs, {job.share.memory_gb:g} GB{gpus} for each node"
        yield "runs on", f"the compute target `{job.compute_target}`: {asks}"
        if not job.joins_subnet:
            yield "network", "Data Science's own: OCI's API takes no subnet for a job run on a compute target"
