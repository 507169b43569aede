# SPDX-License-Identifier: Apache-2.0
"""Access that exists elsewhere: the groups and policies that a stack takes to be there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

from components.oci.client.session import Session
from components.oci.local.sessions import DEPLOYER, session_of
from components.oci.plan import OciPlan
from components.oci.statements import matching_rule, policies
from components.plan.model import Plan
from components.platform.local_cloud import LocalCloud


def stand_in_access(cloud: LocalCloud, plan: OciPlan, used: Plan | None) -> tuple[Plan, list[str]]:
    """The plan by which access is given: the stack's, that of the one it takes access from, or of what stands in."""
    if plan.access.create:
        return plan, []
    if used is not None and "access" in plan.taken:
        return used, []
    wanted = replace(plan.access, create=True, mode="least-privilege")
    with_access = replace(plan, access=wanted)
    deployer, models = session_of(cloud, DEPLOYER), import_module("oci.identity.models")
    dynamic_group(deployer, cloud, wanted.runs_group, matching_rule(with_access, "runs"))
    for name, lines in policies(with_access).items():
        place = cloud.tenancy if lines[0].attached_to_tenancy else cloud.compartment
        details = models.CreatePolicyDetails(
            compartment_id=place,
            name=f"stand-in-{name}",
            description="What a rehearsal takes the existing policies to grant",
            statements=[line.text for line in lines],
        )
        deployer.client("identity").create_policy(details)
    return with_access, ["policies and groups exist elsewhere: the least that the stack needs stands in for them"]


def stand_in_groups(cloud: LocalCloud, plan: OciPlan) -> Iterator[str]:
    """The runs' group, where the stack names one that exists elsewhere."""
    access = plan.access
    if access.create and not access.make_runs_group:
        dynamic_group(session_of(cloud, DEPLOYER), cloud, access.runs_group, matching_rule(plan, "runs"))
        yield f"dynamic group {access.runs_group}: one of the stack's own job runs stands in"


def dynamic_group(deployer: Session, cloud: LocalCloud, name: str, rule: str) -> None:
    identity, models = deployer.client("identity"), import_module("oci.identity.models")
    if not identity.list_dynamic_groups(cloud.tenancy, name=name).data:
        details = models.CreateDynamicGroupDetails(
            compartment_id=cloud.tenancy, name=name, description="of a rehearsal", matching_rule=rule
        )
        identity.create_dynamic_group(details)
