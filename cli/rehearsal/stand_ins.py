# SPDX-License-Identifier: Apache-2.0
"""What a rehearsal needs that its stack leaves to others: access that exists elsewhere."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from cli.rehearsal.people import DEPLOYER, _dynamic_group, session_of
from components.oci.statements import matching_rule, policies
from components.plan.model import Plan
from localcloud.control import Cloud


def stand_in_access(cloud: Cloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
    """The plan by which access is given: the stack's, that of the one it takes access from, or of what stands in."""
    if plan.access.create:
        return plan, []
    if used is not None and "access" in plan.taken:
        return used, []
    wanted = replace(plan.access, create=True, mode="least-privilege")
    asked = replace(plan, access=wanted)
    deployer, models = session_of(cloud, DEPLOYER), import_module("oci.identity.models")
    _dynamic_group(deployer, cloud, wanted.runs_group, matching_rule(asked, "runs"))
    for name, lines in policies(asked).items():
        place = cloud.tenancy if lines[0].attached_to_tenancy else cloud.compartment
        details = models.CreatePolicyDetails(
            compartment_id=place,
            name=f"stand-in-{name}",
            description="What a rehearsal takes the existing policies to grant",
            statements=[line.text for line in lines],
        )
        deployer.client("identity").create_policy(details)
    return asked, ["policies and groups exist elsewhere: the least that the stack needs stands in for them"]
