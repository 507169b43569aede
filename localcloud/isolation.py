# SPDX-License-Identifier: Apache-2.0
"""Whether runs may go without isolation on a machine that cannot isolate them: only if a user chooses so."""

from __future__ import annotations

REQUIRED, WHERE_POSSIBLE = "required", "where-possible"
CHOICES = (REQUIRED, WHERE_POSSIBLE)
VARIABLE = "TRAINYARD_ISOLATION"
REMEDY = (
    "docs/local-cloud.md explains how to allow it on this machine; to run code that you trust without isolation:"
    f" --isolation {WHERE_POSSIBLE}"
)
