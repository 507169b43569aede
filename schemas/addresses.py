# SPDX-License-Identifier: Apache-2.0
"""How many addresses a stack's subnet has to hold."""

from __future__ import annotations

from schemas.model import Stack


def addresses_needed(stack: Stack) -> int:
    """Every run of every job may be live at once, and each node has an address."""
    return sum(job.nodes * max(1, len(job.runs)) for job in stack.jobs.values())
