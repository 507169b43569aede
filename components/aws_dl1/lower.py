# SPDX-License-Identifier: Apache-2.0
"""From the neutral plan to AWS's: the account, roles, the security group."""

from __future__ import annotations

from catalog.tables import table
from components.aws_dl1.plan import AwsAccessPlan, AwsDl1Plan, AwsNetworkPlan
from components.plan.access import grants
from components.plan.model import Plan, extend
from schemas.aws_dl1.model import AwsDl1Stack


def lower(stack: AwsDl1Stack, plan: Plan) -> AwsDl1Plan:
    network, access = stack.network, stack.access
    own = grants(table("aws_dl1")["grant"], frozenset(), {})
    return extend(
        AwsDl1Plan,
        plan,
        network=extend(
            AwsNetworkPlan,
            plan.network,
            vpc=network.vpc,
            security_group=network.security_group or stack.physical("nodes"),
        ),
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
    )
