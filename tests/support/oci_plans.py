# SPDX-License-Identifier: Apache-2.0
"""Plans of stacks on OCI, typed as such."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.oci.plan import OciPlan
from components.plan.build import build_plan
from components.plan.model import Plan
from schemas.model import NOTHING, Stack


def on_oci(plan: Plan) -> OciPlan:
    assert isinstance(plan, OciPlan), plan.platform
    return plan


def oci_plan(stack: Stack, own_frameworks: Mapping[str, Mapping[str, Any]] = NOTHING) -> OciPlan:
    return on_oci(build_plan(stack, own_frameworks))
