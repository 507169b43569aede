# SPDX-License-Identifier: Apache-2.0
"""The compute targets of a stack: managed clusters of Data Science, which exist and cost until they are deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_oci as oci

from components.oci.plan import ComputeTargetPlan, OciPlan

# The only type there is, of targets and of the jobs on them.
MANAGED = "MANAGED_COMPUTE_CLUSTER"


def compute_targets(plan: OciPlan) -> dict[str, pulumi.Input[str]]:
    """The OCID of each compute target, by its key in the stack file."""
    return {key: target.existing or _made(plan, key, target) for key, target in plan.compute_targets.items()}


def _made(plan: OciPlan, key: str, target: ComputeTargetPlan) -> pulumi.Output[str]:
    return oci.datascience.ComputeTarget(
        f"target-{key}",
        compartment_id=plan.compartment,
        display_name=target.name,
        description=f"Machines for the training of {plan.team}, {plan.environment}",
        compute_configuration_details={
            "compute_type": MANAGED,
            "instance_configuration": dict(_machine(target)),
            "scaling_policy": {"policy_type": "FIXED_SIZE", "instance_count": target.instances},
        },
        freeform_tags=dict(plan.tags),
    ).id


def _machine(target: ComputeTargetPlan) -> Mapping[str, Any]:
    shape = target.shape
    if shape is None:
        raise ValueError(f"{target.name} is not made")
    machine: dict[str, Any] = {"instance_shape": shape.name}
    if shape.ocpus is not None:
        machine["instance_shape_details"] = {"ocpus": shape.ocpus, "memory_in_gbs": shape.memory_gb}
    if target.boot_volume_gb is not None:
        machine["boot_volume_size_in_gbs"] = target.boot_volume_gb
    return machine
