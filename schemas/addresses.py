# SPDX-License-Identifier: Apache-2.0
"""How many addresses a stack's subnet needs."""

from __future__ import annotations

from schemas.each import count
from schemas.model import Stack


def addresses_needed(stack: Stack) -> int:
    """The number of addresses in use if all runs of all jobs are live at once."""
    return stack.addresses({name: sum(map(count, job.runs.values())) for name, job in stack.jobs.items()})
