# SPDX-License-Identifier: Apache-2.0
"""Policies of VPC endpoints. They limit what goes through an endpoint, whatever the caller's own policies allow."""

from __future__ import annotations

from collections.abc import Iterator

# Where an action's service has an endpoint of another name. Docker's part of ECR has no actions here.
_NAMES = {"ecr": "ecr.api"}


def policies_on_the_way(instance: str, action: str) -> Iterator[tuple[str, str]]:
    """Names and documents for a call of an instance: those of its network's endpoints for the action's service."""
    from localcloud.aws.additions import machine_view

    one = machine_view.find(instance)
    if one is None:
        return
    service = action.partition(":")[0]
    for endpoint in list(one.ec2_backend.vpc_end_points.values()):
        if endpoint.vpc_id == one.vpc_id and endpoint.service_name.endswith(f".{_NAMES.get(service, service)}"):
            yield "VPC endpoint policy", endpoint.policy_document
