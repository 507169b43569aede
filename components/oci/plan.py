# SPDX-License-Identifier: Apache-2.0
"""The Plan of OCI: the columns of every platform, and OCI's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from components.oci.stack import FlowLog
from components.oci.stack_targets import MachineShare
from components.plan.model import AccessPlan, JobPlan, LogsPlan, NetworkPlan, Plan
from schemas.model import Secret, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class OciNetworkPlan(NetworkPlan):
    vcn: str | None
    route_table: str | None
    compartment: str | None
    # Its name if one is made, or the one that is there.
    flow_log: str | FlowLog | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OciAccessPlan(AccessPlan):
    users_group: str | None
    users_dynamic_group: str | None
    make_notebooks_group: bool
    runs_group: str
    make_runs_group: bool
    domain: str | None
    domain_endpoint: str | None
    tenancy_wide: bool
    narrow_repository: bool
    narrow_bucket: bool
    home_region: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OciLogsPlan(LogsPlan):
    group: str | None
    log: str | None


@dataclass(frozen=True, slots=True)
class ProjectPlan:
    name: str
    create: bool
    project: str | None


@dataclass(frozen=True, slots=True)
class VaultPlan:
    vault: str
    key: str
    secrets: Mapping[str, Secret]


@dataclass(frozen=True, slots=True)
class ComputeTargetPlan:
    """One that is made has a shape, one that is there an OCID or a name."""

    name: str
    shape: Shape | None
    instances: int
    boot_volume_gb: int | None
    existing: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OciJobPlan(JobPlan):
    capacity_reservation: str | None
    compute_target: str | None
    # What a node asks of a machine of the target.
    share: MachineShare | None

    @property
    def joins_subnet(self) -> bool:
        return self.compute_target is None or self.layout == "node-groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class OciPlan(Plan):
    network: OciNetworkPlan
    access: OciAccessPlan
    logs: OciLogsPlan
    compartment: str | None
    tenancy: str | None
    project: ProjectPlan
    vault: VaultPlan | None
    compute_targets: Mapping[str, ComputeTargetPlan] = field(default_factory=dict)
    jobs: Mapping[str, OciJobPlan] = field(default_factory=dict)


def oci_plan(plan: Plan) -> OciPlan:
    """The same plan with OCI's type. Raises TypeError if it is of another platform."""
    if not isinstance(plan, OciPlan):
        raise TypeError(f"{plan.stack} runs on {plan.platform}")
    return plan
