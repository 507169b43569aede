# SPDX-License-Identifier: Apache-2.0
"""What a rehearsal needs that its stack leaves to others: access that exists elsewhere."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from cli.place import Place
from cli.planning import planned
from cli.rehearsal_people import DEPLOYER, _dynamic_group, session_of
from components.oci.statements import matching_rule, policies
from components.plan.model import AccessPlan, Plan
from localcloud.control import Cloud


def stand_in_access(cloud: Cloud, plan: Plan, used: Place | None) -> tuple[AccessPlan, list[str]]:
    """Who is granted what: by the stack, by the one it takes access from, or by stand-ins for what exists elsewhere."""
    if plan.access.create:
        return plan.access, []
    if used is not None and "access" in plan.taken:
        theirs = planned(str(used.file), used.file.parent, "text").access
        return theirs, [f"access is what the stack {used.stack} grants"]
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
    return wanted, ["policies and groups exist elsewhere: the least that the stack needs stands in for them"]
