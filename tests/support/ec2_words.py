# SPDX-License-Identifier: Apache-2.0
"""Launch templates as programs write them, in the words of EC2's own calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Fields of the launch template whose names differ between Pulumi's SDK and EC2.
_SPELLED = {
    "securityGroups": "Groups", "vpcSecurityGroupIds": "SecurityGroupIds", "ebs": "Ebs", "tags": "Tags",
}  # fmt: skip
_TEXTS_OF_BOOLEANS = ("true", "false")


def as_ec2(value: Any) -> Any:
    """Translates Pulumi's spelling into EC2's: names begin with a capital, tags are lists, booleans are no texts."""
    if isinstance(value, list):
        return [as_ec2(item) for item in value]
    if not isinstance(value, Mapping):
        return value == "true" if value in _TEXTS_OF_BOOLEANS else value
    return {
        _SPELLED.get(key, key[0].upper() + key[1:]): [{"Key": name, "Value": text} for name, text in item.items()]
        if key == "tags"
        else as_ec2(item)
        for key, item in value.items()
    }
