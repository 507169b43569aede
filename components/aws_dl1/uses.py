# SPDX-License-Identifier: Apache-2.0
"""What a stack takes from the outputs of the one under `uses`."""

from __future__ import annotations

TAKEN = {
    "network": ("subnetId", "securityGroupId"),
    "access": ("nodesRole", "instanceProfile"),
    "bucket": ("bucket",),
    "registry": ("imagePushAddress",),
    "logs": ("logGroup",),
}
