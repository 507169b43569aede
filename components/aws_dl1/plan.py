# SPDX-License-Identifier: Apache-2.0
"""The Plan of AWS DL1: what every platform's says, and what only AWS has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from components.aws_dl1.stack import Ingress, PublicAddress
from components.plan.model import AccessPlan, JobPlan, NetworkPlan, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsNetworkPlan(NetworkPlan):
    """`security_group`: the id of an existing one, else the name of the new one.

    `gateway_cidr`: the subnet of the NAT gateway. `public`: the nodes' way out is an internet gateway.
    `endpoints`: services that the nodes reach through gateways of their own, by AWS's names.
    """

    vpc: str | None
    route_table: str | None
    security_group: str
    make_security_group: bool
    zone: str | None
    ingress: tuple[Ingress, ...]
    public: bool
    gateway_cidr: str | None
    endpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsAccessPlan(AccessPlan):
    users_group: str | None
    users_role: str | None
    runs_role: str
    make_runs_role: bool


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The machines of one job, which stay between its runs.

    `name` is what their resources are called, `nodes` their names. `key` is the job's name in the bucket and on the
    nodes. `image_parameter` holds the image's id, where `image` is None.
    """

    name: str
    key: str
    nodes: tuple[str, ...]
    instance_type: str
    image: str | None
    image_parameter: str | None
    release: str
    efa: int
    public_address: PublicAddress
    reservation: str | None
    placement_group: str | None
    make_placement_group: bool
    spot: bool
    # What the machines are made with. Which way libfabric takes comes with the ticket.
    host_nic: Literal["libfabric", "sockets"]
    host_memory: bool
    ssh_port: int
    stop_when_idle_minutes: int
    key_rotation: int
    disk_gb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsJobPlan(JobPlan):
    cluster: ClusterPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsDl1Plan(Plan):
    network: AwsNetworkPlan
    access: AwsAccessPlan
    account: str | None
    jobs: Mapping[str, AwsJobPlan] = field(default_factory=dict)


def aws_dl1_plan(plan: Plan) -> AwsDl1Plan:
    """The same plan with this platform's type. Raises TypeError if it is of another platform."""
    if not isinstance(plan, AwsDl1Plan):
        raise TypeError(f"{plan.stack} runs on {plan.platform}")
    return plan


def aws_dl1_job(job: JobPlan) -> AwsJobPlan:
    """The same job with this platform's type. Raises TypeError if it is of another platform."""
    if not isinstance(job, AwsJobPlan):
        raise TypeError(f"{job.name} is a job of another platform")
    return job
