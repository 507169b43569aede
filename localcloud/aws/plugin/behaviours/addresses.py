# SPDX-License-Identifier: Apache-2.0
"""Elastic IPs, and what they belong to."""

from typing import Any

from components.platform.calls import Call
from components.platform.values import Properties
from localcloud.aws.plugin.table import AwsResource

_TARGETS = {"instanceId": "InstanceId", "networkInterfaceId": "NetworkInterfaceId"}


class AssociationResource(AwsResource):
    """Which machine has an address. It has no tags: one that is there already with this target is the one wanted."""

    def _left_over(self, call: Call, inputs: Properties, mark: str) -> Any:
        if not inputs.get("allocationId"):
            return None
        listed = self.write(call, inputs, "DescribeAddresses", {"AllocationIds": [inputs["allocationId"]]})
        there: Properties = next((one for one in listed["Addresses"] if one.get("AssociationId")), {})
        wanted = {member: inputs[key] for key, member in _TARGETS.items() if inputs.get(key)}
        return there if wanted and wanted.items() <= there.items() else None
