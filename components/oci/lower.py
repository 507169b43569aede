# SPDX-License-Identifier: Apache-2.0
"""From the neutral plan to OCI's: groups, compartments, the project, the vault, and grants that only OCI needs."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.tables import table
from components.oci.plan import (
    ComputeTargetPlan,
    OciAccessPlan,
    OciJobPlan,
    OciLogsPlan,
    OciNetworkPlan,
    OciPlan,
    ProjectPlan,
    VaultPlan,
)
from components.oci.stack import FlowLog, OciJob, OciStack
from components.oci.stack_targets import share_of
from components.plan.access import grants
from components.plan.model import Grant, JobPlan, Plan, extend
from components.plan.resolved import ResolvedJob


def lower(stack: OciStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> OciPlan:
    network, logs = stack.network, stack.logs.existing
    return extend(
        OciPlan,
        plan,
        network=extend(
            OciNetworkPlan,
            plan.network,
            vcn=network.vcn,
            route_table=network.route_table,
            compartment=network.compartment,
            flow_log=stack.physical("flows") if network.flow_log is True else network.flow_log or None,
        ),
        access=_access(stack, plan, jobs),
        logs=extend(OciLogsPlan, plan.logs, group=logs.group if logs else None, log=logs.log if logs else None),
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
        jobs={name: _job(job, stack.jobs[name]) for name, job in plan.jobs.items()},
        vault=VaultPlan(stack.vault.vault, stack.vault.key, stack.vault.secrets) if stack.vault else None,
    )


def _job(job: JobPlan, spec: OciJob) -> OciJobPlan:
    return extend(
        OciJobPlan,
        job,
        capacity_reservation=spec.capacity_reservation,
        compute_target=spec.compute_target,
        # Nodes on a target use the boot volumes of its machines.
        block_storage_gb=0 if spec.compute_target else job.block_storage_gb,
        share=share_of(spec.shape, table("shapes")) if spec.compute_target else None,
    )


def _access(stack: OciStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> OciAccessPlan:
    access = stack.access
    users = access.users
    return extend(
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
        grants=(*plan.access.grants, *_own_grants(stack, jobs)),
    )


def _own_grants(stack: OciStack, jobs: Mapping[str, ResolvedJob]) -> tuple[Grant, ...]:
    secrets, key = _secrets(stack), stack.bucket.key
    holds = {
        "secrets": bool(secrets),
        "ads-driver": any(job.options.get("adsDriver") and job.spec.layout == "run-per-node" for job in jobs.values()),
        "key": key is not None and stack.bucket.existing is None,
        "existing-flow-log": isinstance(stack.network.flow_log, FlowLog),
        "compute-targets": any(job.compute_target for job in stack.jobs.values()),
        "joins": stack.joins_subnet,
    }
    words = frozenset(word for word, true in holds.items() if true)
    return tuple(grants(table("oci_access")["grant"], words, {"secrets": secrets, "key": (key or "",)}))


def _secrets(stack: OciStack) -> tuple[str, ...]:
    """Those made for the stack, by name, and those that open repositories of code, by OCID."""
    made = (stack.physical(name) for name in (stack.vault.secrets if stack.vault else ()))
    keys = (job.code.git.secret for job in stack.jobs.values() if job.code and job.code.git and job.code.git.secret)
    return tuple(dict.fromkeys((*made, *(key for key in keys if not key.startswith("${")))))
