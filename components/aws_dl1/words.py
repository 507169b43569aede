# SPDX-License-Identifier: Apache-2.0
"""What `trainyard plan` says in AWS's words."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.tables import table
from components.aws_dl1.plan import AwsDl1Plan, AwsNetworkPlan, ClusterPlan
from components.plan.platform import Row, Words
from components.plan.show import made_or_not, name_or_owner
from schemas.names import plural

_ADDRESSES = {
    "none": "none; people reach the nodes through AWS Systems Manager",
    "automatic": "one for each node, another one after each stop",
    "elastic": "an Elastic IP address for the first node",
}


def words(plan: AwsDl1Plan) -> Words:
    return Words(
        place=[("account", plan.account or "")],
        principals=tuple(_principals(plan)),
        network=tuple(_network(plan)),
        storage=tuple(_storage(plan)),
        jobs={name: tuple(_cluster(job.cluster)) for name, job in plan.jobs.items()},
    )


def _principals(plan: AwsDl1Plan) -> Iterator[Row]:
    access = plan.access
    if access.users_group:
        yield "users", f"group {access.users_group}"
    if access.users_role:
        yield "users", f"role {access.users_role}"
    new = " (made)" if access.make_runs_role and access.create else ""
    yield "runs", name_or_owner(plan, "access", f"role {access.runs_role}{new}")


def _network(plan: AwsDl1Plan) -> Iterator[Row]:
    network = plan.network
    # EFA's traffic has no ports: no narrower rule lets it through.
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
    yield "way out", _way_out(network)


def _way_out(network: AwsNetworkPlan) -> str:
    if network.vpc:
        routes = f"route table {network.route_table}" if network.route_table else "main route table"
        return f"where the {routes} of that VPC leads: to S3, ECR, CloudWatch Logs, Secrets Manager, Systems Manager"
    if network.nat:
        return "to S3 by its gateway endpoint, and out through NAT"
    services = f"to S3 by its gateway endpoint, and to {', '.join(network.endpoints)} by endpoints in the subnet"
    if network.public:
        return f"{services}; nodes with a public address reach the internet"
    return f"{services}; S3 and ECR take writes in this account and in the stack's bucket only"


def _storage(plan: AwsDl1Plan) -> Iterator[Row]:
    logs = plan.logs
    if plan.bucket.create and plan.bucket.versioning and plan.jobs:
        rows = table("aws_dl1")["old_versions"]
        yield "old versions", "; ".join(f"of {row['words']} end after {plural(row['days'], 'day')}" for row in rows)
    if logs.enabled:
        made = f"{logs.group_name}, {made_or_not(logs.create)}, {logs.retention_days} days"
        yield "log group", name_or_owner(plan, "logs", made)


def _cluster(cluster: ClusterPlan) -> Iterator[Row]:
    row = table("aws_dl1")["shapes"].get(cluster.instance_type, {})
    nodes = len(cluster.nodes)
    size = f", {nodes * row['accelerators']} accelerators, {nodes * row['vcpus']} vCPUs" if row else ""
    bought = "spot" if cluster.spot else f"in {cluster.reservation}" if cluster.reservation else "On-Demand"
    yield "machines", f"{nodes} x {cluster.instance_type}{size}, {bought}"
    yield "placed", _placed(cluster)
    yield "interfaces", _interfaces(cluster)
    yield "public", _ADDRESSES[cluster.public_address]
    named = cluster.image or f"what the parameter {cluster.image_parameter} says"
    yield "machine image", f"{named}, with release {cluster.release} of the Gaudi software"
    yield "SSH", f"port {cluster.ssh_port} between the nodes, key number {cluster.key_rotation}"
    yield "money", _money(cluster)


def _placed(cluster: ClusterPlan) -> str:
    if cluster.placement_group:
        return f"in the placement group {cluster.placement_group}"
    if cluster.make_placement_group:
        return f"close together, in the placement group {cluster.name} (made)"
    return "where the reservation lies" if cluster.reservation else "alone"


def _interfaces(cluster: ClusterPlan) -> str:
    efa = f"{cluster.efa} x EFA" if cluster.efa else "1 without EFA"
    return f"{efa}; between nodes HCCL uses {_host_nic(cluster)}"


def _host_nic(cluster: ClusterPlan) -> str:
    if cluster.host_nic == "sockets":
        return "TCP sockets over one interface"
    if cluster.host_memory:
        return "libfabric over the host's memory"
    return "Gaudi Direct over EFA where kernel and libfabric can, else the host's memory"


def _money(cluster: ClusterPlan) -> str:
    idle = cluster.stop_when_idle_minutes
    stops = (
        f"machines stop after {plural(idle, 'minute')} without a run, and the next run starts them again"
        if idle
        else "machines run until the stack is destroyed, also when nothing trains"
    )
    return f"{stops}; destroying the stack ends them, while disks and addresses of stopped ones still cost"
