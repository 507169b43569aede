# SPDX-License-Identifier: Apache-2.0
"""The Plan of AWS: what all platforms have, and what only AWS has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Literal

from catalog.aws import CAPACITY_BLOCK, SPOT, Interface, Market, accelerator_of_machine, accelerators, aws_machine
from catalog.machines import COLLECTIVE_FRAMEWORKS
from catalog.tables import table
from components.aws.stack import AwsDl1Stack, AwsJob, Ingress, PublicAddress, gateway_cidr
from components.plan.build import grants_of_rows
from components.plan.model import (
    INTERNET,
    SUBNET,
    AccessPlan,
    JobPlan,
    NetworkPlan,
    Plan,
    PortRule,
    extend_plan,
    job_as,
    plan_as,
)
from components.plan.platform import PlannedNode, Planning, Rendezvous, Row, RulePlace, Words
from components.plan.ports import HTTPS, OPEN, ResolvedJob
from components.plan.show import made_or_not, name_or_owner
from schemas.name_suggestions import count_noun

_ADDRESSES = {
    "none": "none; people reach the nodes through AWS Systems Manager",
    "automatic": "one for each node, another one after each stop",
    "elastic": "an Elastic IP address for the first node",
}
TAKEN = {
    "network": ("subnetId", "securityGroupId"),
    "access": ("nodesRole", "instanceProfile"),
    "bucket": ("bucket",),
    "registry": ("imagePushAddress",),
    "logs": ("logGroup",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsNetworkPlan(NetworkPlan):
    """`security_group`: the id of an existing one, else the name of the new one.

    `gateway_cidr`: the subnet of the NAT gateway. `public`: the nodes' subnet has a route to an internet gateway.
    `endpoints`: services with interface endpoints in the nodes' subnet, by AWS's names.
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
    permissions_boundary: str | None


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The machines of one job, which stay between its runs.

    `name`: the name of their resources. `nodes`: the machines' names. `key`: the job's name in the bucket and on the
    nodes. `image_parameter`: the parameter that holds the image's id, if `image` is None. `release`: of the
    accelerators' software; empty where machines and images need not agree on one.
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
    market: Market
    # The setting at the creation of machines. Whether libfabric uses host memory is in the ticket.
    host_nic: Literal["libfabric", "sockets"]
    host_memory: bool
    ssh_port: int
    stop_when_idle_minutes: int
    key_rotation: int
    disk_gb: int

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        """With which each machine starts. Empty if the catalog does not have its type, for which no plan is made."""
        machine = aws_machine(self.instance_type)
        return machine.interfaces(self.efa) if machine else ()


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
    return plan_as(AwsDl1Plan, plan)


def aws_dl1_job(job: JobPlan) -> AwsJobPlan:
    return job_as(AwsJobPlan, job)


def lower_aws_dl1(stack: AwsDl1Stack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> AwsDl1Plan:
    access = stack.access
    holds = frozenset({"key"} if stack.bucket.key else ())
    own = grants_of_rows(table("aws_dl1_access")["grant"], holds, {})
    return extend_plan(
        AwsDl1Plan,
        plan,
        network=_lower_network(stack, plan),
        access=extend_plan(
            AwsAccessPlan,
            plan.access,
            users_group=access.users.group,
            users_role=access.users.role,
            runs_role=access.runs or stack.physical("nodes"),
            make_runs_role=access.runs is None,
            permissions_boundary=access.permissions_boundary,
            grants=(*plan.access.grants, *own),
        ),
        account=stack.account,
        jobs={
            name: extend_plan(AwsJobPlan, job, cluster=_lower_cluster(stack, stack.jobs[name], job))
            for name, job in plan.jobs.items()
        },
    )


def _lower_network(stack: AwsDl1Stack, plan: Plan) -> AwsNetworkPlan:
    network = stack.network
    makes_vpc = plan.network.create and network.vpc is None
    public = makes_vpc and any(job.cluster.public_address != "none" for job in stack.jobs.values())
    rules = plan.network.rules
    # With NAT, the neutral plan has the same rules.
    if public and plan.network.mode == "proof-of-concept":
        rules = (*rules, PortRule(SUBNET, INTERNET, None, OPEN))
    elif public:
        why = "code, packages and images from outside, by public addresses"
        rules = (*rules, PortRule(SUBNET, INTERNET, HTTPS, why))
    return extend_plan(
        AwsNetworkPlan,
        plan.network,
        rules=rules,
        vpc=network.vpc,
        route_table=network.route_table,
        security_group=network.security_group or stack.physical("nodes"),
        make_security_group=network.security_group is None and plan.network.create,
        zone=network.zone,
        ingress=network.ingress,
        public=public,
        gateway_cidr=gateway_cidr(network.cidr, plan.network.subnet_cidr) if makes_vpc and network.nat else None,
        # In an existing VPC, its owner provides routes to the services: AWS would refuse a second endpoint for one of
        # them.
        endpoints=tuple(table("aws_dl1")["endpoints"]["without_nat"]) if makes_vpc and not network.nat else (),
    )


def _lower_cluster(stack: AwsDl1Stack, spec: AwsJob, job: JobPlan) -> ClusterPlan:
    cluster = spec.cluster
    published = accelerators().get(cluster.ami or "")
    parameter = published.ami if published else cluster.ami_parameter or ""
    return ClusterPlan(
        name=stack.physical(job.called),
        key=job.called,
        nodes=tuple(f"{role.called}-{index}" for role in job.roles for index in range(role.replicas)),
        instance_type=job.shape.name,
        image=None if published else cluster.ami,
        image_parameter=parameter.replace("{release}", spec.release) or None,
        release=spec.release,
        efa=spec.efa,
        public_address=cluster.public_address,
        reservation=cluster.reservation,
        placement_group=cluster.placement_group,
        # A reservation may be in a placement group already, which the machines must then use.
        make_placement_group=job.nodes > 1 and cluster.placement_group is None and cluster.reservation is None,
        market=cluster.bought,
        host_nic="sockets" if cluster.host_nic == "sockets" or not spec.efa else "libfabric",
        host_memory=cluster.host_nic == "host-memory",
        ssh_port=cluster.ssh_port,
        stop_when_idle_minutes=cluster.idle_minutes,
        key_rotation=cluster.key_rotation,
        disk_gb=job.block_storage_gb,
    )


def aws_dl1_words(plan: AwsDl1Plan) -> Words:
    access, logs = plan.access, plan.logs
    principals = [("users", f"group {access.users_group}")] if access.users_group else []
    if access.users_role:
        principals.append(("users", f"role {access.users_role}"))
    boundary = f", within the boundary {access.permissions_boundary}" if access.permissions_boundary else ""
    new = f" (made{boundary})" if access.make_runs_role and access.create else ""
    principals.append(("runs", name_or_owner(plan, "access", f"role {access.runs_role}{new}")))
    storage: list[Row] = []
    if plan.bucket.create and plan.bucket.versioning and plan.jobs:
        rules = table("aws_dl1")["old_versions"]
        ends = [f"of {rule['words']} end after {count_noun(rule['days'], 'day')}" for rule in rules]
        storage.append(("old versions", "; ".join(ends)))
    if logs.enabled:
        group = f"{logs.group_name}, {made_or_not(logs.create)}, {logs.retention_days} days"
        storage.append(("log group", name_or_owner(plan, "logs", group)))
    return Words(
        place=[("account", plan.account or "")],
        principals=tuple(principals),
        network=tuple(_network_words(plan)),
        storage=tuple(storage),
        jobs={name: tuple(_cluster_words(job.cluster)) for name, job in plan.jobs.items()},
    )


def _network_words(plan: AwsDl1Plan) -> Iterator[Row]:
    network = plan.network
    # EFA's traffic has no ports, so a narrower rule is not possible.
    group = ("security group", f"{network.security_group}: everything from and to itself, as EFA needs it")
    if not network.create:
        yield "subnet", network.subnet or "of the stack it uses"
        yield group
        return
    yield ("in VPC", network.vpc) if network.vpc else ("network", network.cidr)
    yield "subnet", network.subnet_cidr
    yield "zone", network.zone or "the first one that offers the machines"
    yield group
    for item in network.ingress:
        yield "let in", f"{item.cidr} to {item.ports}: {item.why}"
    if network.vpc:
        routes = f"route table {network.route_table}" if network.route_table else "main route table"
        services = "to S3, ECR, CloudWatch Logs, Secrets Manager, Systems Manager"
        yield "way out", f"where the {routes} of that VPC leads: {services}"
    elif network.nat:
        yield "way out", "to S3 by its gateway endpoint, and out through NAT"
    else:
        services = f"to S3 by its gateway endpoint, and to {', '.join(network.endpoints)} by endpoints in the subnet"
        reach = "S3 and ECR take writes in this account and in the stack's bucket only"
        if network.public:
            reach = "nodes with a public address reach the internet"
        yield "way out", f"{services}; {reach}"


def _cluster_words(cluster: ClusterPlan) -> Iterator[Row]:
    machine, accelerator = aws_machine(cluster.instance_type), accelerator_of_machine(cluster.instance_type)
    nodes = len(cluster.nodes)
    size = ""
    if machine:
        cards = f", {nodes * machine.accelerators} accelerators" if machine.accelerators else ""
        size = f"{cards}, {nodes * machine.vcpus} vCPUs"
    yield "machines", f"{nodes} x {cluster.instance_type}{size}, {_bought_words(cluster)}"
    if cluster.placement_group:
        yield "placed", f"in the placement group {cluster.placement_group}"
    elif cluster.make_placement_group:
        yield "placed", f"close together, in the placement group {cluster.name} (made)"
    else:
        yield "placed", "where the reservation lies" if cluster.reservation else "alone"
    traffic = accelerator.traffic if accelerator else ""
    if cluster.host_nic == "sockets":
        traffic = "TCP sockets over one interface"
    elif cluster.host_memory:
        traffic = "libfabric over the host's memory"
    ordinary = sum(interface.kind == "interface" for interface in cluster.interfaces)
    beside = f" beside {ordinary} ordinary one, which has the node's address" if ordinary else ""
    interfaces = f"{cluster.efa} x EFA{beside}" if cluster.efa else "1 without EFA"
    yield "interfaces", f"{interfaces}; between nodes {traffic}"
    yield "public", _ADDRESSES[cluster.public_address]
    named = cluster.image or f"what the parameter {cluster.image_parameter} says"
    software = f", with release {cluster.release} of the software for {accelerator.words}" if accelerator else ""
    yield "machine image", f"{named}{software if cluster.release else ''}"
    yield "SSH", f"port {cluster.ssh_port} between the nodes, key number {cluster.key_rotation}"
    idle = cluster.stop_when_idle_minutes
    stops = (
        f"machines stop after {count_noun(idle, 'minute')} without a run, and the next run starts them again"
        if idle
        else "machines run until the stack is destroyed, also when nothing trains"
    )
    if cluster.market == CAPACITY_BLOCK:
        stops = "the block is paid for: machines run until AWS ends them, half an hour before it ends"
    yield "money", f"{stops}; destroying the stack ends them, while disks and addresses of stopped ones still cost"


def _bought_words(cluster: ClusterPlan) -> str:
    if cluster.market == CAPACITY_BLOCK:
        return f"in the capacity block {cluster.reservation}"
    if cluster.market == SPOT:
        return "spot"
    return f"in {cluster.reservation}" if cluster.reservation else "On-Demand"


def _accelerator_environment(job: ResolvedJob) -> Mapping[str, str]:
    spec = job.spec
    if not isinstance(spec, AwsJob) or spec.accelerator is None:
        return {}
    return {**spec.accelerator.environment, **(spec.accelerator.transport if spec.efa else {})}


def _planned_nodes(stack: AwsDl1Stack, job: ResolvedJob) -> Iterator[PlannedNode]:
    """The program on each machine has counted its accelerators already (launcher/aws_dl1/machine/equipment.py), but
    the image decides whether they use EFA."""
    spec = job.spec
    if isinstance(spec, AwsJob):
        nodes = sum(role.replicas for role in spec.roles.values())
        by_accelerators = spec.framework in COLLECTIVE_FRAMEWORKS and spec.options.get("backend") != "gloo"
        has_devices = bool(spec.machine and spec.machine.accelerators)
        by_efa = nodes > 1 and spec.efa > 0 and by_accelerators and has_devices
        yield PlannedNode(
            tuple(map(job.called, job.roles)), disk_gb=spec.block_storage_gb, transport="efa" if by_efa else ""
        )


PLANNING = Planning(
    way_to_services="through gateway endpoints, or NAT",
    lower=lower_aws_dl1,
    rendezvous=lambda layout: Rendezvous("bucket", "addresses are exchanged in the bucket"),
    words=aws_dl1_words,
    # The same name as in `_lower_network`. If the network is another stack's, its own one is not known here.
    rule_place=lambda stack, job: RulePlace(
        f"security group {stack.network.security_group or stack.physical('nodes')}", "the group itself"
    ),
    planned_nodes=_planned_nodes,
    environments=lambda job, part, names, run, ranks: repeat(_accelerator_environment(job), len(ranks)),
    # A job is one cluster, and each run needs the whole cluster.
    runs_at_once=False,
)
