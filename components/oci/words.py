# SPDX-License-Identifier: Apache-2.0
"""What `trainyard plan` says in OCI's words."""

from __future__ import annotations

from collections.abc import Iterator

from components.oci.plan import OciPlan
from components.plan.platform import Row, Words
from components.plan.show import made_or_not, name_or_owner
from schemas.oci.model import FlowLog


def words(plan: OciPlan) -> Words:
    return Words(
        place=[("compartment", plan.compartment or ""), ("tenancy", plan.tenancy or "")],
        principals=tuple(_principals(plan)),
        network=(*_network(plan), *_flow_log(plan.network.flow_log)),
        storage=tuple(_storage(plan)),
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
