# SPDX-License-Identifier: Apache-2.0
"""The Plan of OCI: what all platforms have, and what only OCI has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from catalog.machines import machine_named
from catalog.tables import table
from components.oci.node_environment import environments_of_nodes, git_environment
from components.oci.stack import FlowLog, MachineShare, OciJob, OciStack, share_of
from components.plan.build import grants_of_rows
from components.plan.model import AccessPlan, Grant, JobPlan, LogsPlan, NetworkPlan, Plan, extend_plan, plan_as
from components.plan.platform import PlannedNode, Planning, Rendezvous, Row, RulePlace, Words
from components.plan.ports import ResolvedJob, subnet_cidr
from components.plan.show import made_or_not, name_or_owner
from schemas.model import Layout, Secret, Shape
from schemas.name_suggestions import count_noun

# Concern -> outputs of the other stack, which this stack uses.
TAKEN = {
    "network": ("subnetId",),
    "access": ("runsGroup",),
    "bucket": ("bucket",),
    "registry": ("imagePushAddress",),
    "logs": ("logGroupId", "logId"),
    "project": ("projectId",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OciNetworkPlan(NetworkPlan):
    vcn: str | None
    route_table: str | None
    compartment: str | None
    # The name of the new one, or the existing one.
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
    """A new target has a shape, an existing one an OCID or a name."""

    name: str
    shape: Shape | None
    instances: int
    boot_volume_gb: int | None
    existing: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OciJobPlan(JobPlan):
    capacity_reservation: str | None
    compute_target: str | None
    # The part of a machine of the target that a node gets.
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
    return plan_as(OciPlan, plan)


def lower_to_oci(stack: OciStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> OciPlan:
    network, logs = stack.network, stack.logs.existing
    access = stack.access
    users = access.users
    return extend_plan(
        OciPlan,
        plan,
        network=extend_plan(
            OciNetworkPlan,
            plan.network,
            vcn=network.vcn,
            route_table=network.route_table,
            compartment=network.compartment,
            flow_log=stack.physical("flows") if network.flow_log is True else network.flow_log or None,
        ),
        access=extend_plan(
            OciAccessPlan,
            plan.access,
            users_group=users.group,
            users_dynamic_group=stack.physical("notebooks") if users.notebooks else users.dynamic_group,
            make_notebooks_group=users.notebooks,
            runs_group=access.runs or stack.physical("runs"),
            make_runs_group=access.runs is None,
            domain=access.domain,
            domain_endpoint=access.domain_endpoint,
            tenancy_wide=access.scope == "tenancy" or access.mode == "proof-of-concept",
            narrow_repository=access.narrow.repository,
            narrow_bucket=access.narrow.bucket,
            home_region=access.home_region,
            grants=(*plan.access.grants, *_grants_only_on_oci(stack, jobs)),
        ),
        logs=extend_plan(OciLogsPlan, plan.logs, group=logs.group if logs else None, log=logs.log if logs else None),
        compartment=stack.compartment,
        tenancy=stack.tenancy,
        project=ProjectPlan(
            name=stack.project.name or stack.physical("training"),
            create=stack.makes("project"),
            project=stack.project.existing,
        ),
        compute_targets={
            key: ComputeTargetPlan(
                stack.physical(key), target.shape, target.instances, target.boot_volume_gb, target.existing
            )
            for key, target in stack.compute_targets.items()
        },
        jobs={
            name: extend_plan(
                OciJobPlan,
                job,
                capacity_reservation=spec.capacity_reservation,
                compute_target=spec.compute_target,
                # Nodes on a target use the boot volumes of its machines.
                block_storage_gb=0 if spec.compute_target else job.block_storage_gb,
                share=share_of(spec.shape, table("shapes")) if spec.compute_target else None,
            )
            for name, job in plan.jobs.items()
            for spec in [stack.jobs[name]]
        },
        vault=VaultPlan(stack.vault.vault, stack.vault.key, stack.vault.secrets) if stack.vault else None,
    )


def _grants_only_on_oci(stack: OciStack, jobs: Mapping[str, ResolvedJob]) -> tuple[Grant, ...]:
    # The secrets that the stack makes, by name, and those with tokens for code repositories, by OCID.
    made = (stack.physical(name) for name in (stack.vault.secrets if stack.vault else ()))
    tokens = (job.code.git.secret for job in stack.jobs.values() if job.code and job.code.git and job.code.git.secret)
    secrets = tuple(dict.fromkeys((*made, *(token for token in tokens if not token.startswith("${")))))
    key = stack.bucket.key
    holds = {
        "secrets": bool(secrets),
        "ads-driver": any(job.options.get("adsDriver") and job.spec.layout == "run-per-node" for job in jobs.values()),
        "key": key is not None and stack.bucket.existing is None,
        "existing-flow-log": isinstance(stack.network.flow_log, FlowLog),
        "compute-targets": any(job.compute_target for job in stack.jobs.values()),
        "joins": stack.joins_subnet,
    }
    words = frozenset(word for word, true in holds.items() if true)
    return tuple(grants_of_rows(table("oci_access")["grant"], words, {"secrets": secrets, "key": (key or "",)}))


def oci_plan_words(plan: OciPlan) -> Words:
    return Words(
        place=[("compartment", plan.compartment or ""), ("tenancy", plan.tenancy or "")],
        principals=tuple(_principal_rows(plan)),
        network=tuple(_network_rows(plan)),
        storage=tuple(_storage_rows(plan)),
        jobs={name: tuple(_compute_target_rows(job)) for name, job in plan.jobs.items()},
    )


def _principal_rows(plan: OciPlan) -> Iterator[Row]:
    access = plan.access
    if access.users_group:
        yield "users", f"group {access.users_group}"
    if access.users_dynamic_group:
        new = " (made)" if access.make_notebooks_group else ""
        yield "users", f"dynamic group {access.users_dynamic_group}{new}"
    new = " (made)" if access.make_runs_group and access.create else ""
    yield "runs", name_or_owner(plan, "access", f"dynamic group {access.runs_group}{new}")
    yield "where", "the tenancy" if access.tenancy_wide else "the compartment"


def _network_rows(plan: OciPlan) -> Iterator[Row]:
    network = plan.network
    if network.create:
        own = "to Oracle's services, and out through NAT" if network.nat else "to Oracle's services only"
        yield ("in VCN", network.vcn) if network.vcn else ("network", network.cidr)
        yield "subnet", network.subnet_cidr
        yield "way out", "as the route table of that VCN says" if network.vcn else own
    else:
        yield "subnet", network.subnet or "of the stack it uses"
    if isinstance(network.flow_log, FlowLog):
        yield "flow log", f"{network.flow_log.log}, not made"
    elif network.flow_log:
        yield "flow log", f"{network.flow_log}, made; OCI charges for what a tenancy's logs store beyond 10 GB a month"


def _storage_rows(plan: OciPlan) -> Iterator[Row]:
    logs, project = plan.logs, plan.project
    if logs.enabled:
        made = f"{logs.log_name} in {logs.group_name}, {made_or_not(logs.create)}, {logs.retention_days} days"
        yield "log", made if logs.create else name_or_owner(plan, "logs", f"{logs.log} in {logs.group}")
    yield "project", f"{name_or_owner(plan, 'project', project.project or project.name)}, {made_or_not(project.create)}"
    if plan.vault:
        yield "secrets", f"{', '.join(plan.vault.secrets)} in {plan.vault.vault}"
    for target in plan.compute_targets.values():
        if target.shape is None:
            yield "compute target", f"{target.existing}, not made"
        else:
            machines = f"{target.instances} of {target.shape.name}"
            yield "compute target", f"{target.name}, made: {machines}; OCI charges for them while it exists"


def _compute_target_rows(job: OciJobPlan) -> Iterator[Row]:
    if job.compute_target and job.share:
        gpus = f", {count_noun(job.share.gpus, 'GPU')}" if job.share.gpus else ""
        asks = f"{job.share.ocpus:g} OCPUs, {job.share.memory_gb:g} GB{gpus} for each node"
        yield "runs on", f"the compute target `{job.compute_target}`: {asks}"
        if not job.joins_subnet:
            yield "network", "Data Science's own: OCI's API takes no subnet for a job run on a compute target"


def registry_host(region: str) -> str:
    key = table("regions")["keys"].get(region)
    return f"{key}.ocir.io" if key else f"ocir.{region}.oci.oraclecloud.com"


def _rendezvous_of_layout(layout: Layout) -> Rendezvous:
    if layout == "node-groups":
        return Rendezvous("cluster-metadata", "addresses and ranks are those of OCI's own list of nodes")
    return Rendezvous("bucket", "addresses are exchanged in the bucket")


def _rule_place(stack: OciStack, job: OciJob) -> RulePlace | None:
    if job.compute_target and job.layout != "node-groups":
        return None
    if stack.makes("network"):
        cidr = subnet_cidr(stack)
        return RulePlace(f"security list {stack.physical('rules')} of subnet {cidr}", cidr)
    subnet = f"subnet {stack.network.subnet}" if stack.network.subnet else "the subnet of the stack it uses"
    return RulePlace(f"a security list of {subnet}", "the addresses of that subnet")


def _planned_nodes(stack: OciStack, job: ResolvedJob) -> Iterator[PlannedNode]:
    spec = job.spec
    # On a compute target, nodes have a share of its machines, and their disks.
    if isinstance(spec, OciJob) and not spec.compute_target:
        machine = machine_named(spec.shape.name) or {}
        # As in `A10 24GB`.
        memory = str(machine.get("accelerator", "")).rpartition(" ")[2].removesuffix("GB")
        yield PlannedNode(
            tuple(map(job.called, job.roles)),
            machine.get("accelerators", 0),
            machine.get("driver", ""),
            device_gb=int(memory or 0),
            disk_gb=spec.block_storage_gb,
        )


PLANNING = Planning(
    way_to_services="through the service gateway",
    lower=lower_to_oci,
    rendezvous=_rendezvous_of_layout,
    words=oci_plan_words,
    circumstances=lambda stack: frozenset({"joins"} if stack.joins_subnet else ()),
    rule_place=_rule_place,
    planned_nodes=_planned_nodes,
    environments=environments_of_nodes,
    group_environment=git_environment,
    # Images of earlier releases know the variables `OCI__RUNTIME_…` only.
    names_code=False,
)
