# SPDX-License-Identifier: Apache-2.0
"""What a stack takes from the outputs of the one under `uses`."""

from __future__ import annotations

# Concern -> outputs of the other stack that this one takes.
TAKEN = {
    "network": ("subnetId",),
    "access": ("runsGroup",),
    "bucket": ("bucket",),
    "registry": ("imagePushAddress",),
    "logs": ("logGroupId", "logId"),
    "project": ("projectId",),
}
