# SPDX-License-Identifier: Apache-2.0
"""How many addresses a stack's subnet needs, and whether a network has them."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network

from schemas.each import count
from schemas.model import Stack


def addresses_needed(stack: Stack) -> int:
    """The number of addresses in use if all runs of all jobs are live at once."""
    return stack.addresses({name: sum(map(count, job.runs.values())) for name, job in stack.jobs.items()})


def lies_outside(cidr: str, blocks: Sequence[str]) -> bool:
    """Whether a subnet of these addresses cannot be made in a network of these blocks. Unknown is not outside."""
    try:
        return bool(blocks) and not any(IPv4Network(cidr).subnet_of(IPv4Network(block)) for block in blocks)
    except ValueError:
        return False
