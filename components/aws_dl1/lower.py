# SPDX-License-Identifier: Apache-2.0
"""From the neutral plan to AWS's: the account, roles, the network around the nodes, and a cluster for each job."""

from __future__ import annotations

from catalog.tables import table
from components.aws_dl1.addresses import gateway_cidr
from components.aws_dl1.plan import AwsAccessPlan, AwsDl1Plan, AwsJobPlan, AwsNetworkPlan, ClusterPlan
from components.aws_dl1.stack import AwsDl1Stack, AwsJob
from components.plan.access import grants
from components.plan.model import INTERNET, SUBNET, JobPlan, NetworkPlan, Plan, PortRule, extend
from components.plan.ports import HTTPS, OPEN


def lower(stack: AwsDl1Stack, plan: Plan) -> AwsDl1Plan:
    access = stack.access
    holds = frozenset({"key"} if stack.bucket.key else ())
    own = grants(table("aws_dl1_access")["grant"], holds, {})
    return extend(
        AwsDl1Plan,
        plan,
        network=_network(stack, plan),
        access=extend(
            AwsAccessPlan,
            plan.access,
            users_group=access.users.group,
            users_role=access.users.role,
            runs_role=access.runs or stack.physical("nodes"),
            make_runs_role=access.runs is None,
            grants=(*plan.access.grants, *own),
        ),
        account=stack.account,
        jobs={
            name: extend(AwsJobPlan, job, cluster=_cluster(stack, stack.jobs[name], job))
            for name, job in plan.jobs.items()
        },
    )


def _network(stack: AwsDl1Stack, plan: Plan) -> AwsNetworkPlan:
    network = stack.network
    makes_vpc = plan.network.create and network.vpc is None
    public = makes_vpc and any(job.cluster.public_address != "none" for job in stack.jobs.values())
    return extend(
        AwsNetworkPlan,
        plan.network,
        rules=(*plan.network.rules, *(_outward(plan.network) if public else ())),
        vpc=network.vpc,
        route_table=network.route_table,
        security_group=network.security_group or stack.physical("nodes"),
        make_security_group=network.security_group is None and plan.network.create,
        zone=network.zone,
        ingress=network.ingress,
        public=public,
        gateway_cidr=gateway_cidr(network.cidr, plan.network.subnet_cidr) if makes_vpc and network.nat else None,
        # In an existing VPC its owner leads to the services: a second gateway for one of them would be refused.
        endpoints=tuple(table("aws_dl1")["endpoints"]["without_nat"]) if makes_vpc and not network.nat else (),
    )


def _outward(network: NetworkPlan) -> tuple[PortRule, ...]:
    """What nodes reach by public addresses: the same as others reach through NAT, which the neutral plan knows."""
    if network.mode == "proof-of-concept":
        return (PortRule(SUBNET, INTERNET, None, OPEN),)
    return (PortRule(SUBNET, INTERNET, HTTPS, "code, packages and images from outside, by public addresses"),)


def _cluster(stack: AwsDl1Stack, spec: AwsJob, job: JobPlan) -> ClusterPlan:
    cluster = spec.cluster
    return ClusterPlan(
        name=stack.physical(job.called),
        key=job.called,
        nodes=tuple(f"{role.called}-{index}" for role in job.roles for index in range(role.replicas)),
        instance_type=job.shape.name,
        image=cluster.ami,
        image_parameter=(cluster.ami_parameter or "").replace("{release}", cluster.release) or None,
        release=cluster.release,
        efa=cluster.efa,
        public_address=cluster.public_address,
        reservation=cluster.reservation,
        placement_group=cluster.placement_group,
        # A reservation lies in a group of its own choice: a new one would not be that.
        make_placement_group=job.nodes > 1 and cluster.placement_group is None and cluster.reservation is None,
        spot=cluster.spot,
        host_nic="sockets" if cluster.host_nic == "sockets" else "libfabric",
        host_memory=cluster.host_nic == "host-memory",
        ssh_port=cluster.ssh_port,
        stop_when_idle_minutes=cluster.stop_when_idle,
        key_rotation=cluster.key_rotation,
        disk_gb=job.block_storage_gb,
    )
