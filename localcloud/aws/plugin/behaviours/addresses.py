# SPDX-License-Identifier: Apache-2.0
"""Associations of elastic IPs."""

from typing import Any

from components.platform.calls import Call
from components.platform.values import Properties
from localcloud.aws.plugin.table import AwsResource

_TARGETS = {"instanceId": "InstanceId", "networkInterfaceId": "NetworkInterfaceId"}


class AssociationResource(AwsResource):
    """The association of an address with a machine. It has no tags, so an existing one with this target is adopted."""

    def _left_over(self, call: Call, inputs: Properties, mark: str) -> Any:
        if not inputs.get("allocationId"):
            return None
        listed = self.write(call, inputs, "DescribeAddresses", {"AllocationIds": [inputs["allocationId"]]})
        there: Properties = next((one for one in listed["Addresses"] if one.get("AssociationId")), {})
        wanted = {member: inputs[key] for key, member in _TARGETS.items() if inputs.get(key)}
        return there if wanted and wanted.items() <= there.items() else None
