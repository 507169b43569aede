# SPDX-License-Identifier: Apache-2.0
"""Derives the property names of the Pulumi provider `oci` from those of OCI's API.

Pulumi takes its names from Terraform, which writes `ipv4CidrBlock` as `ipv4cidr_block` and gives lists plural names.
"""

import re

_AFTER_DIGIT = re.compile(r"(?<=\d)[A-Z]")
_RENAMED = {"lifecycleState": "state", "isStateless": "stateless", "inactiveStatus": "inactiveState"}


def pulumi_name(api_name: str, swagger_type: str = "") -> str:
    if api_name in _RENAMED:
        return _RENAMED[api_name]
    name = _AFTER_DIGIT.sub(lambda match: match[0].lower(), api_name).replace("GBs", "Gbs")
    return f"{name}s" if swagger_type.startswith("list[") and not name.endswith("s") else name
