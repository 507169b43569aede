# SPDX-License-Identifier: Apache-2.0
"""Plans of stacks on OCI, typed as such."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.oci import plan as oci
from components.plan.build import build_plan
from schemas.model import NOTHING, Stack


def oci_plan(stack: Stack, own_frameworks: Mapping[str, Mapping[str, Any]] = NOTHING) -> oci.OciPlan:
    return oci.oci_plan(build_plan(stack, own_frameworks))
