# SPDX-License-Identifier: Apache-2.0
"""Access that exists elsewhere: the local stack gives the named role and group the least that the stack needs."""

from __future__ import annotations

from components.aws_dl1.local.file import least_access
from components.aws_dl1.plan import AwsDl1Plan
from components.plan.model import Plan


def stand_in_access(plan: AwsDl1Plan, used: Plan | None) -> tuple[Plan, list[str]]:
    """The plan by which access is given: the stack's, that of the one it takes access from, or of what stands in."""
    if plan.access.create:
        return plan, []
    if used is not None and "access" in plan.taken:
        return used, []
    return least_access(plan), []
