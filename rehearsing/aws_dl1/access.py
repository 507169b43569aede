# SPDX-License-Identifier: Apache-2.0
"""Access that exists elsewhere: the least that the stack needs stands in for it, on the named role and group."""

from __future__ import annotations

import json
from dataclasses import replace

from components.aws_dl1.plan import AwsDl1Plan
from components.aws_dl1.statements import policies
from components.plan.model import Plan
from localcloud.control import Cloud
from localstacks.aws_dl1.sessions import DEPLOYER, session_of


def stand_in_access(cloud: Cloud, plan: AwsDl1Plan, used: Plan | None) -> tuple[Plan, list[str]]:
    """The plan by which access is given: the stack's, that of the one it takes access from, or of what stands in."""
    if plan.access.create:
        return plan, []
    if used is not None and "access" in plan.taken:
        return used, []
    with_access = replace(plan, access=replace(plan.access, create=True, mode="least-privilege"))
    # Groups that every local account has are no stand-ins, so nobody else gives them anything.
    iam = session_of(cloud, DEPLOYER, plan.region).client("iam")
    for policy in policies(with_access):
        document = json.dumps(policy.document, sort_keys=True)
        role = plan.access.runs_role if policy.who == "runs" else plan.access.users_role
        if role:
            iam.put_role_policy(RoleName=role, PolicyName=policy.name, PolicyDocument=document)
        elif plan.access.users_group:
            iam.put_group_policy(GroupName=plan.access.users_group, PolicyName=policy.name, PolicyDocument=document)
    return with_access, ["policies exist elsewhere: the least that the stack needs stands in for them"]
