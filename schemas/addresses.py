# SPDX-License-Identifier: Apache-2.0
"""How many addresses a stack's subnet needs."""

from __future__ import annotations

from schemas.each import count
from schemas.model import Stack


def addresses_needed(stack: Stack) -> int:
    """The number of nodes if all runs of all jobs are live at once. Each node needs an address."""
    return sum(job.nodes * max(1, sum(map(count, job.runs.values()))) for job in stack.jobs.values())
